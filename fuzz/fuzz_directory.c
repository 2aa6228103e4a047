/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the broker's module reads of users' servers (directory.h), and of other brokers' modules:
 * messages, and the order in which they come, of three connections of two users.
 *
 * Each request that the directory is given is let go of once, by the end at the latest, and no
 * server gets a message that is not of its own user.
 */
#include "fuzz/fuzz.h"
#include "plugins/flux/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BROKERS = 4, CLIENTS = 3, REQUESTS = 64, JOBS = 4, ALARM = 2000 };

static const struct client clients[CLIENTS] = {{"a", 7}, {"b", 7}, {"c", 8}};

struct request {
    enum { UNUSED, OPEN, GONE } state;
    uint32_t uid; /* whose it is */
};

static struct world {
    struct directory *dir;
    int64_t now;
    struct request requests[REQUESTS];
    unsigned nrequests;
    uint32_t speaks; /* uid */
    bool refuses;
} world;

static int64_t now(void *arg)
{
    (void)arg;
    return world.now;
}

static int respond(void *arg, const void *request, const void *data, size_t len)
{
    const struct request *r = request;
    (void)arg;
    FUZZ_CHECK(r->state == OPEN && len > 0);
    FUZZ_CHECK(*(const unsigned char *)data != PACKET_BYTES || r->uid == world.speaks);
    return world.refuses ? EIO : 0;
}

static void let_go(void *arg, const void *request)
{
    struct request *r = (struct request *)request;
    (void)arg;
    FUZZ_CHECK(r->state == OPEN);
    r->state = GONE;
}

static void answer(void *arg, const void *request, int errnum, const char *text)
{
    if (errnum == 0 && text != NULL)
        fuzz_check_text(text);
    let_go(arg, request);
}

static void tell(void *arg, uint32_t rank, const void *data, size_t len)
{
    (void)arg, (void)data;
    FUZZ_CHECK(rank < BROKERS && len > 0);
}

static int set_alarm(void *arg, unsigned ms)
{
    (void)arg;
    return ms <= ALARM ? 0 : -1;
}

static struct request *request_of(const struct client *client)
{
    struct request *r = &world.requests[world.nrequests++];
    *r = (struct request){OPEN, client->uid};
    return r;
}

/* ---- bodies of right shape, with small numbers ---- */

static void put_job(struct wire_out *out, struct fuzz_bytes *in)
{
    wire_put_u64(out, fuzz_below(in, JOBS));
}

static void put_small(struct wire_out *out, struct fuzz_bytes *in)
{
    wire_put_u32(out, fuzz_below(in, BROKERS + 1));
}

/* Numbers, and then any bytes. */
static void put_rest(struct wire_out *out, struct fuzz_bytes *in, unsigned numbers)
{
    size_t len;
    while (numbers-- > 0)
        put_small(out, in);
    const uint8_t *bytes = fuzz_take(in, fuzz_byte(in), &len);
    wire_put_raw(out, bytes, len);
}

static void enter(const struct client *client, struct fuzz_bytes *in, struct wire_out *out)
{
    struct registration reg;
    struct err err = {0};
    wire_put_u32(out, PACKET_VERSION);
    put_job(out, in);
    uint32_t node = fuzz_below(in, BROKERS), n = 1 + fuzz_below(in, BROKERS);
    wire_put_u32(out, node);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u32(out, fuzz_below(in, 2) == 0 ? (i - node) % BROKERS : fuzz_byte(in));
    int rc = directory_read(world.dir, out->data, out->len, &reg, &err);
    struct request *r = rc == 0 ? request_of(client) : NULL;
    if (rc == 0)
        rc = directory_register(world.dir, client, &reg, r, &err);
    if (rc != 0)
        free(reg.brokers);
    if (rc != 0 && r != NULL)
        r->state = GONE;
    fuzz_check_text(err.text);
}

static void look_for(const struct client *client, struct fuzz_bytes *in, struct wire_out *out)
{
    uint64_t job;
    put_job(out, in);
    put_job(out, in);
    if (directory_find(world.dir, client, out->data, out->len, &job) != 0)
        return;
    FUZZ_CHECK(job < JOBS);
    directory_found(world.dir, client, out->data, out->len, fuzz_below(in, BROKERS + 1));
    directory_ended(world.dir, client->uid, job);
}

static void meet(const struct client *client, struct fuzz_bytes *in, struct wire_out *out)
{
    struct wire_out home = {0}, found = {0};
    put_job(out, in);
    if (directory_meet(world.dir, client, out->data, out->len, &home) == 0)
        FUZZ_CHECK(directory_home(world.dir, home.data, home.len, &found) == 0 && found.len == 16);
    wire_out_free(&home);
    wire_out_free(&found);
}

static void send_bytes(const struct client *client, struct fuzz_bytes *in, struct wire_out *out)
{
    wire_put_u32(out, PACKET_VERSION);
    put_job(out, in);
    put_small(out, in);
    put_small(out, in);
    put_job(out, in);
    put_rest(out, in, 1);
    directory_send(world.dir, client, out->data, out->len, request_of(client));
}

/* muster.gone of another module. */
static void be_told(struct fuzz_bytes *in, struct wire_out *out)
{
    wire_put_u32(out, PACKET_VERSION);
    put_job(out, in);
    wire_put_u32(out, clients[fuzz_below(in, CLIENTS)].uid);
    put_small(out, in);
    wire_put_u8(out, fuzz_byte(in));
    directory_gone(world.dir, NULL, out->data, out->len);
}

/* A message that may make no sense. */
static void say_any(const struct client *client, struct fuzz_bytes *in, struct wire_out *out)
{
    uint32_t what = fuzz_below(in, 6);
    struct wire_out home = {0};
    put_rest(out, in, 0);
    if (what == 0)
        directory_took(world.dir, client, out->data, out->len);
    else if (what == 1)
        directory_leave(world.dir, client, out->data, out->len);
    else if (what == 2)
        directory_state(world.dir, client, out->data, out->len);
    else if (what == 3)
        directory_gone(world.dir, NULL, out->data, out->len);
    else if (what == 4)
        directory_send(world.dir, client, out->data, out->len, request_of(client));
    else
        directory_home(world.dir, out->data, out->len, &home);
    wire_out_free(&home);
}

static void act(struct fuzz_bytes *in)
{
    uint32_t what = fuzz_below(in, 12);
    const struct client *client = &clients[fuzz_below(in, CLIENTS)];
    struct wire_out out = {0};
    world.speaks = client->uid;
    world.refuses = fuzz_below(in, 16) == 15;
    if (what == 0)
        enter(client, in, &out);
    else if (what <= 2)
        send_bytes(client, in, &out);
    else if (what == 3) {
        put_job(&out, in);
        wire_put_u64(&out, fuzz_byte(in));
        directory_took(world.dir, client, out.data, out.len);
    } else if (what == 4) {
        put_job(&out, in);
        wire_put_u32(&out, 2);
        put_small(&out, in);
        put_small(&out, in);
        directory_leave(world.dir, client, out.data, out.len);
    } else if (what == 5) {
        put_job(&out, in);
        put_rest(&out, in, 0);
        directory_state(world.dir, client, out.data, out.len);
    } else if (what == 6)
        look_for(client, in, &out);
    else if (what == 7)
        meet(client, in, &out);
    else if (what == 8)
        be_told(in, &out);
    else if (what == 9)
        directory_stats(world.dir, request_of(client));
    else if (what == 10)
        say_any(client, in, &out);
    else if (fuzz_below(in, 2) == 0)
        directory_disconnect(world.dir, client);
    else if (fuzz_below(in, 2) == 0)
        directory_offline(world.dir, fuzz_below(in, BROKERS + 1));
    else {
        world.now += fuzz_byte(in) * 20;
        directory_alarm(world.dir);
    }
    wire_out_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_bytes in = {data, data + len};
    world = (struct world){.now = 1000};
    const struct directory_env env = {.rank = 0,
                                      .size = BROKERS,
                                      .now = now,
                                      .respond = respond,
                                      .answer = answer,
                                      .drop = let_go,
                                      .tell = tell,
                                      .alarm = set_alarm};
    world.dir = directory_new(&env);
    while (in.p < in.end && world.nrequests < REQUESTS)
        act(&in);
    directory_free(world.dir, ENOSYS, "unloaded");
    for (unsigned i = 0; i < world.nrequests; i++)
        FUZZ_CHECK(world.requests[i].state == GONE);
    return 0;
}

void fuzz_seeds(void)
{
    static const uint8_t registers[] = {0, 0, 0, 1, 0, 0, 0};
    static const uint8_t sends[] = {1, 1, 0, 2, 0, 0, 1, 0, 1, 'x'};
    static const uint8_t took[] = {3, 0, 0, 1, 1};
    static const uint8_t rest[] = {9, 0, 0, 5, 0, 0, 1, 2, '{', '}', 4, 0, 0, 1, 0, 1};
    uint8_t all[sizeof registers + 2 * sizeof sends + sizeof took + sizeof rest], *at = all;
    memcpy(at, registers, sizeof registers);
    at += sizeof registers;
    for (int i = 0; i < 2; i++, at += sizeof sends)
        memcpy(at, sends, sizeof sends);
    memcpy(at, took, sizeof took);
    at += sizeof took;
    memcpy(at, rest, sizeof rest);
    fuzz_seed(registers, sizeof registers);
    fuzz_seed(all, sizeof all);
}
