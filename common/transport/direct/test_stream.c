/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of a direct connection, both ends of which are in one process.
 */
#include "common/transport/direct/stream_private.h"
#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NENDS = 2, TURNS = 100, LONG = 100000 };

/* One end of the connection. */
static struct end {
    struct stream_env env;
    struct stream *stream;
    struct outgoing *queue; /* what it is to write */
    unsigned received, ended;
    const char *why;
} ends[NENDS];

static struct event_base *base;
static unsigned char room[2 * STREAM_ROOM];
extern const struct seal_ops muster_seal;
static struct shared_bytes *kept; /* of the last long frame */
static bool copied;               /* that */
static int full;                  /* a socket that takes nothing; -1: none */

static ssize_t send_or_not(int fd, const struct msghdr *message)
{
    if (fd != full)
        return sockets_of_kernel.sendmsg(fd, message);
    errno = EAGAIN;
    return -1;
}

static void on_receive(void *arg, struct stream *stream, const void *data, size_t len,
                       struct shared_bytes *whole)
{
    struct end *end = arg;
    (void)stream;
    end->received++;
    if (len == LONG) {
        kept = shared_bytes_part(whole, data, len);
        copied = kept->data != data;
        return;
    }
    assert_int_equal(len, 5);
    assert_memory_equal(data, "frame", 5);
}

static struct outgoing *next(void *arg, struct stream *stream)
{
    struct end *end = arg;
    struct outgoing *o = end->queue;
    (void)stream;
    if (o != NULL)
        end->queue = o->next;
    return o;
}

static void on_ended(void *arg, struct stream *stream, const char *why)
{
    struct end *end = arg;
    event_del(stream->read);
    end->ended++;
    end->why = why;
}

static struct timers timers;

static bool make_seals(struct seal *seals[NENDS])
{
    unsigned char points[NENDS][SEAL_POINT];
    for (int i = 0; i < NENDS; i++)
        seals[i] = muster_seal.create(points[i]);
    return seals[0] != NULL && seals[1] != NULL &&
           muster_seal.agree(seals[0], SEAL_CALLER, points[1], "secret", 6, "test", 4) &&
           muster_seal.agree(seals[1], SEAL_ACCEPTOR, points[0], "secret", 6, "test", 4);
}

static int begin(void **state)
{
    static struct sockets sockets;
    struct seal *seals[NENDS];
    int fds[NENDS];
    (void)state;
    full = -1;
    sockets = sockets_of_kernel;
    sockets.sendmsg = send_or_not;
    base = event_base_new();
    if (base == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0 ||
        !make_seals(seals))
        return -1;
    for (uint32_t i = 0; i < NENDS; i++) {
        ends[i] = (struct end){.env = {.arg = &ends[i],
                                       .seal = &muster_seal,
                                       .sockets = &sockets,
                                       .room = room,
                                       .next = next,
                                       .receive = on_receive,
                                       .ended = on_ended,
                                       .timers = &timers}};
        if ((ends[i].stream = stream_new(&ends[i].env, base, fds[i], seals[i], NULL)) == NULL)
            return -1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < NENDS; i++) {
        stream_free(ends[i].stream);
        for (struct outgoing *o; (o = next(&ends[i], NULL)) != NULL;)
            outgoing_drop(o);
    }
    event_base_free(base);
    return 0;
}

/* Runs the loop until nothing more happens. */
static void run(void)
{
    for (int i = 0; i < TURNS; i++)
        event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void send_bytes(struct end *from, void *data, size_t len)
{
    struct outgoing **end = &from->queue;
    while (*end != NULL)
        end = &(*end)->next;
    *end = outgoing_new(data, len, NULL, CARE_MUST, 1);
    assert_non_null(*end);
    (*end)->next = NULL;
    stream_write(from->stream);
}

static void send_frame(struct end *from)
{
    send_bytes(from, strdup("frame"), 5);
}

static void assert_states(enum stream_state first, enum stream_state second)
{
    assert_int_equal(ends[0].stream->state, first);
    assert_int_equal(ends[1].stream->state, second);
}

/* A long body is read into memory of its own, which its receiver may keep. */
static void a_long_body_is_kept_without_a_copy(void **state)
{
    (void)state;
    send_bytes(&ends[0], memset(malloc(LONG), 7, LONG), LONG);
    run();
    assert_int_equal(ends[1].received, 1);
    assert_false(copied);
    assert_int_equal(kept->len, LONG);
    assert_int_equal(kept->data[0], 7);
    assert_int_equal(kept->data[LONG - 1], 7);
    shared_bytes_drop(kept);
}

/* An end that was told to its owner once. @param why NULL: in order */
static void assert_told(const struct end *end, const char *why)
{
    assert_int_equal(end->ended, 1);
    if (why == NULL)
        assert_null(end->why);
    else
        assert_string_equal(end->why, why);
}

/* A connection whose keys have sealed their share ends in order, behind what was sent. */
static void keys_that_are_used_up(void **state)
{
    (void)state;
    ends[0].env.records = 3;
    for (int i = 0; i < 3; i++) {
        assert_true(stream_is_open(ends[0].stream));
        send_frame(&ends[0]);
    }
    assert_false(stream_is_open(ends[0].stream));
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_int_equal(ends[1].received, 3);
    assert_told(&ends[0], NULL);
    assert_told(&ends[1], NULL);
}

static void one_end_says_bye(void **state)
{
    (void)state;
    send_frame(&ends[0]);
    stream_bye(ends[0].stream);
    assert_states(STREAM_ENDED, STREAM_OPEN);
    send_frame(&ends[0]); /* is not taken any more */
    assert_non_null(ends[0].queue);
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_int_equal(ends[1].received, 1);
    assert_told(&ends[0], NULL);
    assert_told(&ends[1], NULL);
}

/* One that cannot be written is left out: what was begun would have to be written first. */
static void no_room_for_a_bye(void **state)
{
    (void)state;
    full = ends[0].stream->fd;
    send_frame(&ends[0]);
    stream_bye(ends[0].stream);
    run();
    assert_states(STREAM_ENDED, STREAM_OPEN);
    shutdown(ends[0].stream->fd, SHUT_WR); /* as its owner does then */
    run();
    assert_states(STREAM_ENDED, STREAM_CLOSED);
    assert_told(&ends[1], "it has closed the connection");
}

/* What comes behind a length that was changed on its way may never be enough. */
static void a_record_that_does_not_end(void **state)
{
    static const unsigned char head[SEAL_HEAD + 100] = {0, 0, 0, 200};
    (void)state;
    assert_int_equal(write(ends[0].stream->fd, head, sizeof head), sizeof head);
    int64_t since = now_ms();
    for (int ms = 0; ms < 3 * STREAM_PART_MS && ends[1].ended == 0; ms += 10) {
        run();
        timers_run(&timers);
        usleep(10000);
    }
    assert_in_range(now_ms() - since, STREAM_PART_MS - 100, 2 * STREAM_PART_MS);
    assert_int_equal(ends[1].stream->state, STREAM_CUT);
    assert_told(&ends[1], "the rest of a message does not come, or it was changed on its way");
    assert_int_equal(ends[1].received, 0);
}

static void the_first_end_counts(void **state)
{
    (void)state;
    stream_cut(ends[0].stream, "for a test");
    stream_cut(ends[0].stream, "once more");
    stream_bye(ends[0].stream);
    assert_states(STREAM_CUT, STREAM_OPEN);
    assert_int_equal(ends[0].ended, 0); /* the loop tells it */
    run();
    assert_told(&ends[0], "for a test");
    assert_false(stream_peer_closed(ends[0].stream));
    shutdown(ends[0].stream->fd, SHUT_RDWR);
    run();
    assert_states(STREAM_CUT, STREAM_CLOSED);
    assert_told(&ends[1], "it has closed the connection");
    assert_true(stream_peer_closed(ends[1].stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_end_says_bye, begin, end),
        cmocka_unit_test_setup_teardown(keys_that_are_used_up, begin, end),
        cmocka_unit_test_setup_teardown(no_room_for_a_bye, begin, end),
        cmocka_unit_test_setup_teardown(the_first_end_counts, begin, end),
        cmocka_unit_test_setup_teardown(a_record_that_does_not_end, begin, end),
        cmocka_unit_test_setup_teardown(a_long_body_is_kept_without_a_copy, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
