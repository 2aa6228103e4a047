/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the link: each frame once, in order, and nothing that is malformed.
 */
#include "ci/loopback/loopback.h"
#include "common/transport/test_link_kit.h"

#include <stdlib.h>

static void ignore(void *arg, uint32_t node)
{
    (void)arg, (void)node;
}

static void repeated_frames(void **state)
{
    (void)state;
    send_frames(2 * MANY);
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        receive(i);
        receive(i);
        receive(i / 2);
    }
    assert_got(0, 2 * MANY);
    assert_int_equal(link_counts(ends.receiver, 0).frames_in, 3 * 2 * MANY);
    assert_int_equal(link_counts(ends.receiver, 0).repeated, 2 * 2 * MANY);
    assert_int_equal(link_counts(ends.sender, 1).frames_out, 2 * MANY);
    assert_int_equal(link_counts(ends.sender, 1).bytes_out, 2 * MANY * ends.len[0]);
    assert_int_equal(link_counts(ends.receiver, 0).bytes_in, 3 * 2 * MANY * ends.len[0]);
}

static void frames_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct loopback_random random = {seed};
        uint32_t order[MANY];
        send_frames(MANY);
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t k = loopback_below(&random, i + 1);
            order[i] = i;
            order[i] = order[k];
            order[k] = i;
        }
        for (uint32_t i = 0; i < MANY; i++) {
            receive(order[i]);
            receive(order[loopback_below(&random, i + 1)]);
        }
        assert_got(0, MANY);
        close_ends(NULL);
        open_ends(NULL);
    }
}

/* As many as one message of a busy back end may have brought. */
static void the_first_frame_comes_last(void **state)
{
    (void)state;
    send_frames(FRAMES);
    for (uint32_t i = 1; i < FRAMES; i++)
        receive(i);
    assert_int_equal(ends.ngot, 0);
    assert_int_equal(link_counts(ends.receiver, 0).held, FRAMES - 1);
    receive(0);
    assert_got(0, FRAMES);
    assert_int_equal(link_counts(ends.receiver, 0).held, 0);
}

/* Gives a frame that was sent another number. */
static void renumber(uint32_t i, uint64_t number)
{
    struct wire_out out = {0};
    wire_put_u64(&out, number);
    memcpy((char *)ends.bytes[i] + 4 + 8 + 4, out.data, 8);
    wire_out_free(&out);
}

/* What does not fit is dropped, and leaves the others alone. */
static void beyond_the_window(void **state)
{
    (void)state;
    send_frames(4);
    renumber(2, WINDOW_MAX + 1);
    renumber(3, UINT64_MAX);
    receive(1); /* held */
    receive(2);
    receive(3);
    assert_int_equal(link_counts(ends.receiver, 0).held, 1);
    receive(0);
    assert_got(0, 2);
}

/* Frames of CARE_MAY are in no order: they neither wait for others nor do others for them. */
static void frames_that_need_not_arrive(void **state)
{
    static const enum frame_type types[] = {FRAME_ASK, FRAME_OUTSIDE, FRAME_OUTSIDE, FRAME_ASK};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, (uint8_t)types[i]);
        wire_put_u32(&out, i);
        link_send(ends.sender, 1, &out);
    }
    receive(2); /* number 1 is lost */
    assert_got(2, 1);
    receive(3); /* waits */
    receive(0);
    assert_int_equal(ends.ngot, 3);
    assert_int_equal(ends.got[1], 0);
    assert_int_equal(ends.got[2], 3);
    /* What has to come in its turn is no frame without a number. */
    memset((char *)ends.bytes[0] + 4 + 8 + 4, 0, 8);
    receive(0);
    assert_int_equal(ends.ngot, 3);
}

/* What another step, another sender or nobody wrote. */
static void frames_that_are_not_ours(void **state)
{
    static const struct {
        size_t at;
        unsigned char bend;
    } bends[] = {
        {4, 1},             /* step */
        {11, 1},            /* step */
        {4 + 8, 1},         /* sender 0x1000000 */
        {4 + 8 + 3, 1},     /* sender 1: the receiver itself */
        {4 + 8 + 3, 3},     /* sender 3: there is none */
        {4 + 8 + 4 + 7, 1}, /* number 0 */
    };
    (void)state;
    send_frames(1);
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        unsigned char *bytes = ends.bytes[0];
        bytes[bends[i].at] ^= bends[i].bend;
        receive(0);
        bytes[bends[i].at] ^= bends[i].bend;
    }
    assert_int_equal(ends.ngot, 0);
    receive(0);
    assert_got(0, 1);
}

static void several_frames_in_one_buffer(void **state)
{
    unsigned char all[1000];
    size_t len = 0;
    (void)state;
    send_frames(5);
    for (uint32_t i = 5; i-- > 0;) {
        memcpy(all + len, ends.bytes[i], ends.len[i]);
        len += ends.len[i];
    }
    link_receive(ends.receiver, all, len, NULL, false);
    assert_got(0, 5);
}

static void cut_frames(void **state)
{
    (void)state;
    send_frames(2);
    for (size_t len = 0; len < ends.len[0]; len++) {
        void *exact = malloc(len > 0 ? len : 1);
        assert_non_null(exact);
        memcpy(exact, ends.bytes[0], len);
        link_receive(ends.receiver, exact, len, NULL, false);
        free(exact);
    }
    /* a frame whose own length leaves no room for its header or its type */
    for (uint32_t size = 0; size <= 8 + 4 + 8; size++) {
        unsigned char bytes[4 + 20];
        memcpy(bytes, ends.bytes[0], sizeof bytes);
        bytes[3] = (unsigned char)size;
        link_receive(ends.receiver, bytes, 4 + size, NULL, false);
    }
    assert_int_equal(ends.ngot, 0);
    receive(0);
    receive(1);
    assert_got(0, 2);
}

/* A frame that cannot be built must not leave a gap that the receiver waits for. */
static void a_failed_frame_leaves_no_gap(void **state)
{
    struct wire_out failed = {.failed = true};
    (void)state;
    link_send(ends.sender, 1, &failed);
    send_frames(1);
    receive(0);
    assert_got(0, 1);
}

/* Bytes that several frames share are at the end of each, and are freed with the last owner. */
static void bytes_that_are_shared(void **state)
{
    static const unsigned char number[] = {0, 0, 0, 0};
    struct shared_bytes *body = shared_bytes_copy(number, sizeof number);
    (void)state;
    assert_non_null(body);
    for (int i = 0; i < 3; i++) {
        struct wire_out out = {0};
        wire_put_u8(&out, FRAME_ASK);
        link_send_shared(ends.sender, 1, &out, body);
        assert_null(out.data);
        receive((uint32_t)i);
    }
    assert_ptr_equal(shared_bytes_hold(body), body);
    shared_bytes_drop(body);
    assert_int_equal(body->owners, 1);
    assert_memory_equal(body->data, number, sizeof number);
    shared_bytes_drop(body);
    shared_bytes_drop(NULL);
    assert_int_equal(ends.ngot, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ends.got[i], 0);
        assert_int_equal(ends.len[i], ends.len[0]);
    }
}

static bool yes(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    return true;
}

static int64_t clock_ms = 1000;

static int64_t clock_now(void *arg)
{
    (void)arg;
    return clock_ms;
}

static struct timers timers = {.now = clock_now};

static struct link_env connected(void)
{
    return (struct link_env){.arg = &ends.sender,
                             .nnodes = 3,
                             .step = STEP,
                             .native = keep,
                             .deliver = take,
                             .timers = &timers,
                             .connect = yes,
                             .ready = ignore,
                             .stuck = ignore};
}

/* Long ones are handed to a connection by reference, short ones are cheaper in one piece. */
static void long_bytes_are_not_copied(void **state)
{
    static const size_t sizes[] = {3, 8191, 8192, 100000};
    const struct link_env env = connected();
    (void)state;
    link_free(ends.sender);
    ends.sender = link_new(&env);
    for (uint32_t i = 0; i < 4; i++) {
        struct wire_out out = {0};
        struct shared_bytes *body = shared_bytes_take(calloc(1, sizes[i]), sizes[i]);
        wire_put_u8(&out, FRAME_ASK);
        link_send_shared(ends.sender, 1, &out, body);
        struct outgoing *o = link_next(ends.sender, 1);
        assert_int_equal(outgoing_len(o), 24 + 1 + sizes[i]);
        assert_int_equal(body->owners, sizes[i] < 8192 ? 1 : 2);
        assert_ptr_equal(o->body, sizes[i] < 8192 ? NULL : body);
        outgoing_drop(o);
        shared_bytes_drop(body);
    }
    assert_null(link_next(ends.sender, 1));
    struct link_counts counts = link_counts(ends.sender, 1);
    assert_int_equal(counts.frames_out, 4);
    assert_int_equal(counts.bytes_out, 4 * 25 + 3 + 8191 + 8192 + 100000);
    assert_int_equal(link_owed(ends.sender, 1).bytes, counts.bytes_out);
    /* without the connection they go on in one piece */
    link_again(ends.sender, 1, true);
    assert_int_equal(ends.nsent, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(ends.len[i], 24 + 1 + sizes[i]);
    assert_int_equal(link_owed(ends.sender, 1).frames, 0);
}

/* A large frame that goes to one server is not copied either. */
static void a_large_frame_is_not_copied(void **state)
{
    enum { LARGE = 100000 };
    static const unsigned char zeros[LARGE];
    const struct link_env env = connected();
    struct wire_out out = {0};
    (void)state;
    link_free(ends.sender);
    ends.sender = link_new(&env);
    wire_put_u8(&out, FRAME_ASK);
    wire_put_raw(&out, zeros, LARGE);
    const void *at = out.data;
    link_send(ends.sender, 1, &out);
    assert_null(out.data);
    struct outgoing *o = link_next(ends.sender, 1);
    assert_ptr_equal(o->body->data, at);
    assert_int_equal(outgoing_len(o), 24 + 1 + LARGE);
    outgoing_drop(o);
}

/* Two servers with a connection. */
static struct link *pair[2];

static void heard(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                  struct shared_bytes *whole)
{
    (void)arg, (void)from, (void)body, (void)len, (void)whole;
    assert_int_equal(type, FRAME_ASK);
    ends.ngot++;
}

static void say(uint32_t from)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_ASK);
    link_send(pair[from], 1 - from, &out);
}

/* Carries what one has for the other. @return how many frames that were */
static unsigned carry(uint32_t from)
{
    struct outgoing *o;
    unsigned n = 0;
    for (; (o = link_next(pair[from], 1 - from)) != NULL; n++) {
        link_receive(pair[1 - from], o->data, o->len, NULL, true);
        outgoing_drop(o);
    }
    return n;
}

static void pass(int64_t ms)
{
    clock_ms += ms;
    timers_run(&timers);
}

static void open_pair(struct link_env env)
{
    for (uint32_t i = 0; i < 2; i++) {
        env.arg = &pair[i];
        env.self = i;
        env.deliver = heard;
        pair[i] = link_new(&env);
    }
}

static void close_pair(void)
{
    link_free(pair[0]);
    link_free(pair[1]);
}

/* An answer acknowledges what it answers. A frame without an answer is acknowledged after 20 ms,
 * and at once for a server that leaves. The link sends again what nobody has acknowledged, and its
 * receiver takes no frame twice. */
static void acknowledgements(void **state)
{
    (void)state;
    open_pair(connected());
    for (unsigned i = 0; i < 10; i++) {
        say(i % 2);
        assert_int_equal(carry(i % 2), 1);
        assert_int_equal(link_owed(pair[i % 2], 1 - i % 2).frames, 1);
        assert_int_equal(link_owed(pair[1 - i % 2], i % 2).frames, 0);
    }
    pass(19);
    assert_int_equal(carry(0), 0);
    pass(1);
    assert_int_equal(carry(0), 1);
    assert_int_equal(link_owed(pair[1], 0).frames, 0);
    say(0);
    say(0);
    outgoing_drop(link_next(pair[0], 1)); /* the connection ends, and that was on its way */
    link_again(pair[0], 1, false);
    assert_int_equal(carry(0), 2);
    link_hurry(pair[0]);
    assert_int_equal(carry(0), 1); /* the question */
    assert_int_equal(carry(1), 1);
    assert_int_equal(link_owed(pair[0], 1).frames, 0);
    assert_int_equal(ends.ngot, 12);
    say(0);
    link_again(pair[0], 1, true);
    assert_int_equal(ends.nsent, 1);
    link_receive(pair[1], ends.bytes[0], ends.len[0], NULL, false);
    assert_int_equal(ends.ngot, 13);
    close_pair();
}

/* Two that leave at once, of which one waits for what the other lacks: neither goes on to ask. */
static void both_leave(void **state)
{
    (void)state;
    open_pair(connected());
    say(0);
    outgoing_drop(link_next(pair[0], 1)); /* it does not come */
    say(0);
    link_hurry(pair[0]);
    link_hurry(pair[1]);
    assert_int_equal(carry(0), 2); /* the question, and the second one */
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(carry((i + 1) % 2), i < 2);
    assert_int_equal(link_owed(pair[0], 1).frames, 2);
    link_again(pair[0], 1, false);
    assert_int_equal(carry(0), 3);
    assert_int_equal(carry(1), 1);
    assert_int_equal(link_owed(pair[0], 1).frames, 0);
    close_pair();
}

static unsigned nstuck;

static void count_stuck(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    nstuck++;
}

/* A server that lacks a frame says again and again what it has taken: that is no progress. */
static void no_progress(void **state)
{
    struct link_env env = connected();
    (void)state;
    env.stuck = count_stuck;
    nstuck = 0;
    open_pair(env);
    say(0);
    outgoing_drop(link_next(pair[0], 1)); /* it does not come */
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(nstuck, i > 5);
        say(0);
        carry(0);
        pass(20);
        assert_int_equal(carry(1), 1);
        pass(880);
    }
    link_again(pair[0], 1, false);
    carry(0);
    assert_int_equal(ends.ngot, 8);
    close_pair();
}

/* What a link holds does not grow with the servers of its step, but with those that it has met. */
static void many_servers(void **state)
{
    enum { MET = 500 };
    struct link_env env = {
        .self = UINT32_MAX - 1, .nnodes = UINT32_MAX, .step = STEP, .native = ignore};
    struct link *link = link_new(&env);
    (void)state;
    assert_non_null(link);
    assert_int_equal(link_counts(link, UINT32_MAX - 2).frames_out, 0);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < MET; i++) {
            struct wire_out frame = {0};
            wire_put_u8(&frame, FRAME_ASK);
            link_send(link, i * 1000003, &frame);
        }
    for (uint32_t i = 0; i < MET; i++)
        assert_int_equal(link_counts(link, i * 1000003).frames_out, 2);
    assert_int_equal(link_counts(link, 1).frames_out, 0);
    link_free(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(repeated_frames),
        LINK_TEST(frames_in_any_order),
        LINK_TEST(the_first_frame_comes_last),
        LINK_TEST(beyond_the_window),
        LINK_TEST(frames_that_need_not_arrive),
        LINK_TEST(frames_that_are_not_ours),
        LINK_TEST(several_frames_in_one_buffer),
        LINK_TEST(cut_frames),
        LINK_TEST(a_failed_frame_leaves_no_gap),
        LINK_TEST(many_servers),
        LINK_TEST(bytes_that_are_shared),
        LINK_TEST(long_bytes_are_not_copied),
        LINK_TEST(a_large_frame_is_not_copied),
        LINK_TEST(acknowledgements),
        LINK_TEST(both_leave),
        LINK_TEST(no_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
