/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What comes off a direct connection, and announcements: readers of bytes that anybody may have
 * written.
 *
 * The first byte of an input says which of them the others are. Records are those of a peer that
 * has the keys and makes no sense: heads are sealed here, over what the input says.
 */
#include "common/transport/direct/announce.h"
#include "common/transport/direct/stream.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANNOUNCEMENT, HELLO, BYTES, RECORDS, KINDS };
enum { TURNS = 4 /* of the loop, for what was written */ };

extern const struct seal_ops muster_seal;

static struct identity own = {.seal = &muster_seal, .step = 7, .self = 1, .key = "a key"};
static struct event_base *base;
static unsigned char room[2 * STREAM_ROOM];
static bool over;

void fuzz_seeds(void)
{
    struct wire_out out = {0};
    const struct addresses at = {.n = 2, .list = {{4, {127, 0, 0, 1}}, {16, {[15] = 1}}}};
    wire_put_u8(&out, ANNOUNCEMENT);
    announce_write(&own, &at, 4711, "credential", 10, &out);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
    wire_put_u8(&out, RECORDS);
    for (int i = 0; i < 3; i++) {
        wire_put_u8(&out, 0);
        wire_put_u8(&out, 3); /* of the frame */
        wire_put_u8(&out, 3); /* of it in this record */
        wire_put_raw(&out, "abc", 3);
    }
    wire_put_u8(&out, 0); /* BYE */
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

static void read_announcement(const uint8_t *data, size_t len)
{
    struct announcement a;
    unsigned char key[SEAL_SECRET];
    if (announce_read(data, len, &a)) {
        FUZZ_CHECK(a.addresses.n > 0 && a.addresses.n <= ADDRESSES_MAX && a.port > 0);
        FUZZ_CHECK(a.len <= len && a.credential >= data && a.credential + a.len <= data + len);
    }
    if (announce_get_secret(&own, 1, data, len, key))
        FUZZ_CHECK(len > SEAL_SECRET && memcmp(key, data + len - SEAL_SECRET, SEAL_SECRET) == 0);
    FUZZ_CHECK(!announce_fits(&own, own.key, data, len) || announce_read(data, len, &a));
}

static void read_hello(const uint8_t *data, size_t len)
{
    struct talk talk = {.challenge = "challenge"};
    uint32_t from;
    memcpy(talk.hello, data, len < sizeof talk.hello ? len : sizeof talk.hello);
    FUZZ_CHECK(!hello_read(&own, &talk, &from));
}

static void receive(void *arg, struct stream *stream, const void *data, size_t len,
                    struct shared_bytes *whole)
{
    const unsigned char *p = data;
    (void)arg;
    (void)stream;
    (void)whole;
    FUZZ_CHECK(len > 0);
    while (len-- > 0) /* all of it can be read */
        over |= *p++ == 0 && over;
}

static struct outgoing *next(void *arg, struct stream *stream)
{
    (void)arg;
    (void)stream;
    return NULL;
}

static void ended(void *arg, struct stream *stream, const char *why)
{
    (void)arg;
    (void)why;
    over = true;
    stream_free(stream);
}

static struct timers timers;

static const struct stream_env env = {.seal = &muster_seal,
                                      .room = room,
                                      .next = next,
                                      .sockets = &sockets_of_kernel,
                                      .receive = receive,
                                      .ended = ended,
                                      .timers = &timers};

/* Writes one record as the peer does. */
static void put_record(struct seal *peer, struct fuzz_bytes *in, struct wire_out *out)
{
    unsigned char head[RECORD_HEAD], record[RECORD_BYTES];
    uint32_t kind = fuzz_byte(in), whole = fuzz_byte(in), want = fuzz_byte(in);
    size_t len;
    const uint8_t *body = fuzz_take(in, want, &len);
    record_write(&(struct record){.whole = kind & 0x10 ? RECORD_PART + whole : whole,
                                  .apart = kind & 0x20 ? kind % 8 : 0},
                 head);
    size_t head_len = kind & 0x40 ? 0 : kind & 0x80 ? whole % RECORD_HEAD : RECORD_HEAD;
    const struct iovec parts[] = {{head, head_len}, {(void *)(uintptr_t)body, len}};
    FUZZ_CHECK(muster_seal.write(peer, parts, 2, record));
    wire_put_raw(out, record, SEAL_HEAD + parts[0].iov_len + len + SEAL_TAG);
}

static void make_seals(struct seal **here, struct seal **peer)
{
    unsigned char own_point[SEAL_POINT], peers_point[SEAL_POINT];
    *here = muster_seal.create(own_point);
    *peer = muster_seal.create(peers_point);
    FUZZ_CHECK(*here != NULL && *peer != NULL &&
               muster_seal.agree(*here, SEAL_CALLER, peers_point, "secret", 6, "", 0) &&
               muster_seal.agree(*peer, SEAL_ACCEPTOR, own_point, "secret", 6, "", 0));
}

/* @param sealed the input says what the peer writes; else it is the bytes themselves */
static void read_stream(const uint8_t *data, size_t len, bool sealed)
{
    struct seal *here, *peer;
    struct fuzz_bytes in = {data, data + len};
    struct wire_out out = {0};
    int fds[2];
    make_seals(&here, &peer);
    if (base == NULL)
        base = event_base_new();
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    struct stream *stream = stream_new(&env, base, fds[0], here, NULL);
    FUZZ_CHECK(stream != NULL);
    over = false;
    while (sealed && in.p < in.end)
        put_record(peer, &in, &out);
    if (!sealed)
        wire_put_raw(&out, data, len);
    if (out.len > 0 && send(fds[1], out.data, out.len, MSG_NOSIGNAL) < 0)
        FUZZ_CHECK(out.len == 0);
    for (int i = 0; i < TURNS && !over; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    close(fds[1]);
    for (int i = 0; i < TURNS && !over; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    FUZZ_CHECK(over); /* the peer has closed it */
    muster_seal.destroy(peer);
    wire_out_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    switch (data[0] % KINDS) {
    case ANNOUNCEMENT:
        read_announcement(data + 1, len - 1);
        break;
    case HELLO:
        read_hello(data + 1, len - 1);
        break;
    default:
        read_stream(data + 1, len - 1, data[0] % KINDS == RECORDS);
    }
    return 0;
}
