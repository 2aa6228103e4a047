/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the life of a direct connection: what may follow what, and both ends of one in one
 * process.
 */
#include "common/transport/direct/stream_private.h"
#include "common/util/log.h"
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
    unsigned received, ended;
    const char *why;
} ends[NENDS];

static struct event_base *base;
static unsigned char room[2 * STREAM_ROOM];
extern const struct seal_ops muster_seal;
static struct shared_bytes *kept; /* of the last long frame */
static bool copied;               /* that */
static unsigned nwarnings;
static char last[256];
static int full; /* a socket that takes nothing; -1: none */

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    nwarnings += level == LOG_LEVEL_WARNING;
    strncpy(last, text, sizeof last - 1);
}

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
    log_open(sink, NULL, LOG_LEVEL_DEBUG, NULL);
    nwarnings = 0;
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
    for (int i = 0; i < NENDS; i++)
        stream_free(ends[i].stream);
    event_base_free(base);
    return 0;
}

/* Runs the loop until nothing more happens. */
static void run(void)
{
    for (int i = 0; i < TURNS; i++)
        event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void send_frame(struct end *from)
{
    struct outgoing *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->data = strdup("frame");
    o->len = 5;
    stream_send(from->stream, o);
}

static void assert_states(enum stream_state first, enum stream_state second)
{
    assert_int_equal(ends[0].stream->state, first);
    assert_int_equal(ends[1].stream->state, second);
}

/* A long body is read into memory of its own, which its receiver may keep. */
static void a_long_body_is_kept_without_a_copy(void **state)
{
    struct outgoing *o = calloc(1, sizeof *o);
    (void)state;
    assert_non_null(o);
    o->data = memset(malloc(LONG), 7, LONG);
    o->len = LONG;
    stream_send(ends[0].stream, o);
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
    assert_int_equal(nwarnings, 0);
}

static void one_end_says_bye(void **state)
{
    (void)state;
    send_frame(&ends[0]);
    stream_bye(ends[0].stream);
    assert_states(STREAM_SAID, STREAM_OPEN);
    assert_false(stream_is_open(ends[0].stream));
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_int_equal(ends[1].received, 1);
    assert_null(stream_pending(ends[0].stream)); /* it was said to have been taken */
    assert_told(&ends[0], NULL);
    assert_told(&ends[1], NULL);
    assert_int_equal(nwarnings, 0);
}

static void both_say_bye_at_once(void **state)
{
    (void)state;
    send_frame(&ends[1]);
    stream_bye(ends[0].stream);
    stream_bye(ends[1].stream);
    stream_bye(ends[1].stream); /* no more than once */
    assert_states(STREAM_SAID, STREAM_SAID);
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_int_equal(ends[0].received, 1);
    assert_null(stream_pending(ends[1].stream));
    assert_int_equal(nwarnings, 0);
}

/* The peer's BYE comes while the own one cannot be written. */
static void a_bye_that_waits(void **state)
{
    (void)state;
    full = ends[0].stream->fd;
    stream_bye(ends[0].stream);
    assert_states(STREAM_SAYING, STREAM_OPEN);
    stream_bye(ends[1].stream);
    run();
    assert_states(STREAM_ANSWERING, STREAM_SAID);
    full = -1;
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_int_equal(nwarnings, 0);
}

/* The peer has said all and taken all; only that we have taken its frame cannot be said. It will
 * send that again another way. */
static void an_end_before_the_ack(void **state)
{
    (void)state;
    send_frame(&ends[1]);
    stream_bye(ends[0].stream);
    full = ends[0].stream->fd;
    stream_bye(ends[1].stream);
    run();
    assert_states(STREAM_ENDED, STREAM_SHUT);
    assert_told(&ends[0], NULL);
    assert_int_equal(ends[0].received, 1);
    assert_non_null(stream_pending(ends[1].stream));
    shutdown(ends[0].stream->fd, SHUT_WR); /* as its owner does then */
    run();
    assert_states(STREAM_ENDED, STREAM_ENDED);
    assert_told(&ends[1], NULL);
    assert_int_equal(nwarnings, 0);
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
    assert_int_equal(nwarnings, 0);
}

/* It has said BYE, and its process ends before ours is written. */
static void closed_after_its_bye(void **state)
{
    (void)state;
    full = ends[0].stream->fd;
    stream_bye(ends[1].stream);
    run();
    assert_states(STREAM_ANSWERING, STREAM_SAID);
    shutdown(ends[1].stream->fd, SHUT_WR);
    run();
    assert_int_equal(ends[0].stream->state, STREAM_CLOSED);
    assert_told(&ends[0], "it has closed the connection");
}

/* A peer that goes on after its goodbye is cut off. */
static void frames_after_the_goodbye(void **state)
{
    (void)state;
    full = ends[0].stream->fd;
    stream_bye(ends[1].stream);
    run();
    ends[1].stream->state = STREAM_OPEN; /* it forgets that it has said BYE */
    send_frame(&ends[1]);
    run();
    assert_int_equal(ends[0].stream->state, STREAM_CUT);
    assert_told(&ends[0], "it sends after its goodbye");
    assert_int_equal(ends[0].received, 0);
}

static void what_cannot_happen(void **state)
{
    struct stream *s = ends[0].stream;
    unsigned refused = 0;
    (void)state;
    assert_false(stream_move(s, STREAM_FIN));
    assert_non_null(strstr(last, ": fin cannot happen in state open; ignored"));
    assert_int_equal(s->state, STREAM_OPEN);
    nwarnings = 0;
    for (int from = 0; from < STREAM_STATES; from++)
        for (int event = 0; event < STREAM_EVENTS; event++) {
            s->state = (enum stream_state)from;
            refused += !stream_move(s, (enum stream_event)event);
        }
    assert_int_equal(refused, STREAM_STATES * STREAM_EVENTS - 21);
    assert_int_equal(nwarnings, refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_end_says_bye, begin, end),
        cmocka_unit_test_setup_teardown(keys_that_are_used_up, begin, end),
        cmocka_unit_test_setup_teardown(both_say_bye_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_bye_that_waits, begin, end),
        cmocka_unit_test_setup_teardown(an_end_before_the_ack, begin, end),
        cmocka_unit_test_setup_teardown(the_first_end_counts, begin, end),
        cmocka_unit_test_setup_teardown(closed_after_its_bye, begin, end),
        cmocka_unit_test_setup_teardown(frames_after_the_goodbye, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_happen, begin, end),
        cmocka_unit_test_setup_teardown(a_long_body_is_kept_without_a_copy, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
