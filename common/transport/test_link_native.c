/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the two ways of a frame: nothing is lost between them, whatever fails and when, and the
 * link alone keeps what has not arrived. Numbers are those of docs/transport.md, "Losses".
 */
#include "common/transport/test_link_kit.h"

#include <stdlib.h>

static int64_t clock_of(void *arg)
{
    (void)arg;
    return 1000;
}

static struct timers timers = {.now = clock_of};
static bool is_up;
static unsigned noffers; /* to the native way */

static void offered(void *arg, uint32_t node)
{
    (void)arg;
    assert_int_equal(node, 1);
    noffers++;
}

static bool connected(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    return is_up;
}

static void ignore(void *arg, uint32_t node)
{
    (void)arg, (void)node;
}

static void begin(bool required)
{
    const struct link_env env = {.nnodes = 3,
                                 .step = STEP,
                                 .native = offered,
                                 .required = required,
                                 .deliver = take,
                                 .timers = &timers,
                                 .connect = connected,
                                 .ready = ignore};
    link_free(ends.sender);
    ends.sender = link_new(&env);
    is_up = required;
    noffers = 0;
}

static void say(enum frame_type type, uint32_t number)
{
    struct wire_out out = {0};
    wire_put_u8(&out, (uint8_t)type);
    wire_put_u32(&out, number);
    link_send(ends.sender, 1, &out);
}

/* A batch: its ticket, and its bytes in the kit. */
static uint64_t batch(size_t max)
{
    struct wire_out out = {0};
    uint64_t ticket = link_batch(ends.sender, 1, max, &out);
    assert_int_equal(ticket != 0, out.len > 0);
    if (ticket != 0) {
        ends.bytes[ends.nsent] = wire_out_take(&out, &ends.len[ends.nsent]);
        ends.nsent++;
    }
    wire_out_free(&out);
    return ticket;
}

/* What the connection takes. @param arrives and whether it comes @return how many frames */
static unsigned carry(bool arrives)
{
    struct outgoing *o;
    unsigned n = 0;
    for (; (o = link_next(ends.sender, 1)) != NULL; n++) {
        if (arrives)
            link_receive(ends.receiver, o->data, o->len, NULL, true);
        outgoing_drop(o);
    }
    return n;
}

static uint32_t kept(void)
{
    return link_owed(ends.sender, 1).frames;
}

static void up(void)
{
    is_up = true;
    link_again(ends.sender, 1, false);
}

static void down(void)
{
    is_up = false;
    link_again(ends.sender, 1, true);
}

/* All frames that there are go in one batch, up to some bytes, and are kept until it has arrived.
 */
static void a_batch(void **state)
{
    (void)state;
    begin(false);
    assert_int_equal(batch(SIZE_MAX), 0);
    for (uint32_t i = 0; i < 5; i++)
        say(FRAME_ASK, i);
    assert_int_equal(noffers, 5);
    size_t one = link_owed(ends.sender, 1).bytes / 5;
    uint64_t first = batch(2 * one), second = batch(1), third = batch(SIZE_MAX);
    assert_true(first != 0 && first < second && second < third);
    assert_int_equal(batch(SIZE_MAX), 0);
    assert_int_equal(ends.len[0], 2 * one);
    assert_int_equal(ends.len[1], one);
    assert_int_equal(ends.len[2], 2 * one);
    assert_int_equal(kept(), 5);
    link_arrived(ends.sender, 1, second); /* and the first with it */
    assert_int_equal(kept(), 2);
    link_arrived(ends.sender, 1, third);
    assert_int_equal(kept(), 0);
    for (uint32_t i = 0; i < 3; i++)
        receive(i);
    assert_got(0, 5);
}

/* 1 and 2: a batch fails, whether it has arrived or not, and all is given again, with what has come
 * since. */
static void a_batch_fails(void **state)
{
    (void)state;
    for (unsigned came = 0; came < 2; came++) {
        begin(false);
        ends.nsent = ends.ngot = 0;
        say(FRAME_ASK, 0);
        say(FRAME_ASK, 1);
        batch(1);
        uint64_t second = batch(1);
        if (came != 0) {
            receive(0);
            receive(1);
        }
        assert_true(link_failed(ends.sender, 1));
        say(FRAME_ASK, 2);
        uint64_t third = batch(SIZE_MAX);
        link_arrived(ends.sender, 1, second); /* late, and it says nothing of the third */
        assert_int_equal(kept(), 3);
        receive(2);
        link_arrived(ends.sender, 1, third);
        assert_int_equal(kept(), 0);
        assert_false(link_failed(ends.sender, 1));
        assert_got(0, 3);
        for (uint32_t i = 0; i < 3; i++)
            free(ends.bytes[i]);
        ends.nsent = 0;
        link_free(ends.receiver);
        const struct link_env env = {
            .self = 1, .nnodes = 3, .step = STEP, .native = offered, .deliver = take};
        ends.receiver = link_new(&env);
    }
}

/* 3: a connection comes while a batch is under way: it takes all, and what the batch does then is
 * of no matter. */
static void a_connection_comes(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 3; how++) {
        begin(false);
        ends.ngot = 0;
        say(FRAME_ASK, 0);
        uint64_t ticket = batch(SIZE_MAX);
        up();
        say(FRAME_ASK, 1);
        assert_int_equal(batch(SIZE_MAX), 0);
        assert_int_equal(carry(false), 2);
        if (how == 0)
            link_arrived(ends.sender, 1, ticket);
        else if (how == 1)
            assert_false(link_failed(ends.sender, 1));
        assert_int_equal(kept(), how == 0 ? 1 : 2);
        assert_int_equal(carry(false), 0);
    }
}

/* 4: the connection ends, and what was under way on it goes natively; a batch of before, which was
 * still under way, is not taken for it. */
static void a_connection_ends(void **state)
{
    (void)state;
    begin(false);
    say(FRAME_ASK, 0);
    uint64_t first = batch(SIZE_MAX);
    up();
    say(FRAME_ASK, 1);
    assert_int_equal(carry(false), 2);
    noffers = 0;
    down();
    assert_int_equal(noffers, 1);
    uint64_t second = batch(SIZE_MAX);
    link_arrived(ends.sender, 1, first);
    assert_int_equal(kept(), 2);
    receive(1);
    assert_got(0, 2);
    link_arrived(ends.sender, 1, second);
    assert_int_equal(kept(), 0);
    say(FRAME_ASK, 2); /* and again */
    up();
    assert_int_equal(carry(true), 1);
    assert_int_equal(kept(), 1); /* not acknowledged */
    down();
    batch(SIZE_MAX);
    receive(2);
    assert_got(0, 3);
}

/* Frames in no order go once; those that are worth it until they arrive, which need not be known of
 * others. None waits for the others, and a connection has none of them. */
static void loose_frames(void **state)
{
    struct wire_out out = {0};
    (void)state;
    begin(false);
    say(FRAME_OUTSIDE, 7);
    wire_put_u8(&out, FRAME_OUTSIDE);
    wire_put_u32(&out, 8);
    link_send_loose(ends.sender, 1, &out, CARE_SHOULD);
    say(FRAME_ASK, 9);
    up();
    assert_int_equal(carry(false), 1);
    batch(SIZE_MAX);
    receive(0);
    assert_int_equal(ends.ngot, 2);
    assert_true(link_failed(ends.sender, 1));
    uint64_t again = batch(SIZE_MAX);
    receive(1);
    assert_int_equal(ends.ngot, 3);
    assert_int_equal(ends.got[2], 8);
    link_arrived(ends.sender, 1, again);
    assert_false(link_failed(ends.sender, 1));
    assert_int_equal(batch(SIZE_MAX), 0);
}

/* For a server that was given up nothing is kept, and nothing more is sent but what may go once. */
static void one_that_was_given_up(void **state)
{
    (void)state;
    begin(false);
    say(FRAME_ASK, 0);
    uint64_t ticket = batch(SIZE_MAX);
    say(FRAME_ASK, 1);
    link_forget(ends.sender, 1);
    assert_int_equal(kept(), 0);
    link_arrived(ends.sender, 1, ticket);
    assert_false(link_failed(ends.sender, 1));
    say(FRAME_ASK, 2);
    assert_int_equal(kept(), 0);
    assert_int_equal(batch(SIZE_MAX), 0);
    say(FRAME_OUTSIDE, 3);
    assert_true(batch(SIZE_MAX) != 0);
}

/* Where connections are required, frames wait for them, and only those in no order go natively. */
static void connections_are_required(void **state)
{
    (void)state;
    begin(true);
    say(FRAME_ASK, 0);
    say(FRAME_OUTSIDE, 1);
    assert_int_equal(noffers, 1);
    assert_true(batch(SIZE_MAX) != 0);
    receive(0);
    assert_got(1, 1);
    down(); /* this server ends */
    assert_int_equal(noffers, 1);
    assert_int_equal(batch(SIZE_MAX), 0);
    assert_false(link_failed(ends.sender, 1));
    assert_int_equal(kept(), 1);
}

static void say_event(uint32_t node, size_t len)
{
    struct wire_out out = {0};
    struct shared_bytes *body = shared_bytes_take(calloc(1, len), len);
    wire_put_u8(&out, FRAME_EVENT);
    link_send_shared(ends.sender, node, &out, body);
    shared_bytes_drop(body);
}

static void ignored(void *arg, uint32_t node)
{
    (void)arg, (void)node;
}

/* What is kept for slow servers has a bound, which a server that takes what it is sent does not
 * notice. What has to arrive is none of it. */
static void slow_servers(void **state)
{
    enum { LEN = 1 << 20 };
    const struct link_env env = {.nnodes = 3, .step = STEP, .native = ignored};
    struct wire_out out = {0};
    (void)state;
    link_free(ends.sender);
    ends.sender = link_new(&env);
    unsigned n = 0;
    for (; !link_is_full(ends.sender, 1) && n < 2 * LINK_FULL / LEN; n++)
        say_event(1, LEN);
    assert_int_equal(n, LINK_FULL / LEN);
    assert_false(link_is_full(ends.sender, 2));
    say_event(2, LINK_SHARE);
    assert_true(link_is_full(ends.sender, 2));
    link_batch(ends.sender, 2, SIZE_MAX, &out);
    link_arrived(ends.sender, 2, 1);
    assert_false(link_is_full(ends.sender, 2));
    wire_out_free(&out);
    link_batch(ends.sender, 1, LEN, &out);
    link_arrived(ends.sender, 1, 1);
    assert_false(link_is_full(ends.sender, 1));
    wire_out_free(&out);
    link_forget(ends.sender, 1);
    assert_int_equal(kept(), 0);
}

static struct link *both[2];

static void hear(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                 struct shared_bytes *whole)
{
    (void)arg, (void)whole;
    if (type == FRAME_CONTRIB)
        ends.ngot++;
    else if (len == 1 && *(const unsigned char *)body != 0)
        link_answer(both[1 - from], from);
}

/* Takes one frame of a server for the other one, which arrives at its socket. @return whether there
 * is one */
static bool pull(uint32_t from)
{
    struct wire_out out = {0};
    uint64_t ticket = link_batch(both[from], 1 - from, 1, &out);
    if (ticket == 0)
        return false;
    ends.bytes[ends.nsent] = wire_out_take(&out, &ends.len[ends.nsent]);
    ends.nsent++;
    link_arrived(both[from], 1 - from, ticket);
    return true;
}

static void bring(uint32_t to, uint32_t i)
{
    link_receive(both[to], ends.bytes[i], ends.len[i], NULL, false);
}

static void contribute(void)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_CONTRIB);
    link_send(both[0], 1, &out);
    assert_true(pull(0));
}

static uint32_t untaken(void)
{
    link_hurry(both[0]);
    return link_owed(both[0], 1).must;
}

/* A server that leaves is told when all that has arrived natively is taken. */
static void the_last_ones(void **state)
{
    struct link_env env = {
        .nnodes = 3, .step = STEP, .native = ignore, .deliver = hear, .timers = &timers};
    (void)state;
    for (env.self = 0; env.self < 2; env.self++)
        both[env.self] = link_new(&env);
    contribute();
    assert_int_equal(link_owed(both[0], 1).must, 0);
    assert_int_equal(untaken(), 1);
    assert_true(pull(0));
    assert_int_equal(untaken(), 1);
    assert_false(pull(0)); /* it was asked */
    bring(1, 1);           /* the question is read first */
    assert_false(pull(1));
    bring(1, 0);
    assert_int_equal(ends.ngot, 1);
    assert_true(pull(1));
    contribute();
    bring(0, 2);
    assert_int_equal(untaken(), 1);
    assert_true(pull(0));
    bring(1, 3);
    bring(1, 4);
    assert_true(pull(1));
    bring(0, 5);
    assert_int_equal(untaken(), 0);
    assert_false(pull(0));
    link_free(both[0]);
    link_free(both[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(a_batch),
        LINK_TEST(a_batch_fails),
        LINK_TEST(a_connection_comes),
        LINK_TEST(a_connection_ends),
        LINK_TEST(loose_frames),
        LINK_TEST(one_that_was_given_up),
        LINK_TEST(connections_are_required),
        LINK_TEST(slow_servers),
        LINK_TEST(the_last_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
