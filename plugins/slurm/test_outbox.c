/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the threads that send: one does, until a node holds it. Of what goes to whom, where a
 * link has the frames. And of what becomes of a server that cannot be sent to.
 */
#include "common/transport/link.h"
#include "plugins/slurm/rm_slurm.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 4, WAIT_MS = 30000, ROUNDS = 20, FRAME_BYTES = 4 + 8 + 4 + 8 + 1 };

/* ---- slurmd ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool held[NODES];        /* a call to that node does not return */
static unsigned arrived[NODES]; /* calls that have come */
static int fails[NODES];        /* how calls to that node end; 0: well */
static uint32_t bytes[NODES];   /* of the last call to it */

int slurm_abi_forward_data(char **nodelist, char *to, uint32_t len, const char *data)
{
    unsigned node = (unsigned)((*nodelist)[1] - '0');
    (void)to, (void)data;
    pthread_mutex_lock(&lock);
    arrived[node]++;
    bytes[node] = len;
    pthread_cond_broadcast(&cond);
    while (held[node])
        pthread_cond_wait(&cond, &lock);
    int rc = fails[node];
    pthread_mutex_unlock(&lock);
    return rc;
}

const char *slurm_abi_strerror(int error)
{
    (void)error;
    return "";
}

static void hold(unsigned node, bool is)
{
    pthread_mutex_lock(&lock);
    held[node] = is;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
}

/* ---- the outbox ---- */

static struct boot_node nodes[NODES] = {
    {.name = (char *)"n0"}, {.name = (char *)"n1"}, {.name = (char *)"n2"}, {.name = (char *)"n3"}};
static struct boot boot = {.nodes = nodes, .nnodes = NODES};
static char address[] = "/s";
static struct rm rm;
static struct link *link;
static struct event_base *base;
static unsigned told[NODES]; /* that it is lost */
static char why_told[64];

static void on_lost(void *arg, uint32_t node, const char *why)
{
    (void)arg;
    told[node]++;
    snprintf(why_told, sizeof why_told, "%s", why);
    link_forget(link, node);
}

static uint64_t on_next(void *arg, uint32_t node, size_t max, struct wire_out *out)
{
    (void)arg;
    return link_batch(link, node, max, out);
}

static void on_arrived(void *arg, uint32_t node, uint64_t ticket)
{
    (void)arg;
    link_arrived(link, node, ticket);
}

static bool on_failed(void *arg, uint32_t node)
{
    (void)arg;
    return link_failed(link, node);
}

static void on_native(void *arg, uint32_t node)
{
    (void)arg;
    outbox_ready(&rm, node);
}

static struct timers timers;
static bool is_up; /* connections to all */

static bool on_connect(void *arg, uint32_t node)
{
    (void)arg, (void)node;
    return is_up;
}

static void ignore(void *arg, uint32_t node)
{
    (void)arg, (void)node;
}

static int64_t clock_of(void *arg)
{
    (void)arg;
    return 1;
}

static int setup(void **state)
{
    pthread_condattr_t attr;
    (void)state;
    memset(arrived, 0, sizeof arrived);
    memset(fails, 0, sizeof fails);
    memset(told, 0, sizeof told);
    memset(bytes, 0, sizeof bytes);
    is_up = false;
    timers.now = clock_of;
    const struct link_env env = {.nnodes = NODES,
                                 .step = 1,
                                 .native = on_native,
                                 .timers = &timers,
                                 .connect = on_connect,
                                 .ready = ignore};
    link = link_new(&env);
    why_told[0] = '\0';
    base = event_base_new();
    rm = (struct rm){
        .boot = &boot,
        .address = address,
        .peer_ms = WAIT_MS,
        .opened = now_ms(),
        .host = {.next = on_next, .arrived = on_arrived, .failed = on_failed, .lost = on_lost},
        .handoff = base != NULL ? handoff_new(base) : NULL};
    if (rm.handoff == NULL)
        return -1;
    pthread_mutex_init(&rm.lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rm.sent, &attr);
    pthread_cond_init(&rm.ender.wake, &attr);
    pthread_condattr_destroy(&attr);
    return outbox_init(&rm, base) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++)
        hold(i, false);
    pthread_mutex_lock(&rm.lock);
    rm.closing = true;
    pthread_mutex_unlock(&rm.lock);
    outbox_drain(&rm, now_ms() + WAIT_MS);
    assert_true(rm.idle || rm.ended);
    bool all = rm.ended || outbox_close(&rm, now_ms() + WAIT_MS);
    outbox_free(&rm);
    link_free(link);
    handoff_free(rm.handoff);
    event_base_free(base);
    pthread_mutex_destroy(&rm.lock);
    pthread_cond_destroy(&rm.sent);
    pthread_cond_destroy(&rm.ender.wake);
    return all ? 0 : -1;
}

static void send_frame(unsigned node, enum frame_type type)
{
    struct wire_out out = {0};
    wire_put_u8(&out, (uint8_t)type);
    link_send(link, node, &out);
}

static void send_to(unsigned node)
{
    send_frame(node, FRAME_CONTRIB);
}

static unsigned threads(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < RM_SENDERS_MAX; i++)
        n += rm.senders[i] != NULL;
    return n;
}

/* Runs the loop until so many calls to that node have come. */
static void await(unsigned node, unsigned count)
{
    const struct timeval soon = {.tv_usec = 1000};
    unsigned now = 0;
    for (int64_t by = now_ms() + WAIT_MS; now < count && now_ms() < by;) {
        event_base_loopexit(base, &soon);
        event_base_dispatch(base);
        pthread_mutex_lock(&lock);
        now = arrived[node];
        pthread_mutex_unlock(&lock);
    }
    assert_true(now >= count);
}

static void await_idle(void)
{
    while (!rm.idle)
        event_base_loop(base, EVLOOP_ONCE);
}

/* Calls to that node end so from now on. */
static void refuse(unsigned node, int rc)
{
    pthread_mutex_lock(&lock);
    fails[node] = rc;
    pthread_mutex_unlock(&lock);
}

/* Runs the loop until that node is told to be lost. */
static void await_loss(unsigned node)
{
    while (told[node] == 0)
        event_base_loop(base, EVLOOP_ONCE);
}

/* ---- tests ---- */

static void one_thread_is_enough(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        send_to(1 + i % 3);
        await_idle();
    }
    assert_int_equal(threads(), 1);
}

/* What follows to the same node waits for its turn, which no other thread can take. */
static void a_node_has_one_thread(void **state)
{
    (void)state;
    hold(1, true);
    send_to(1);
    await(1, 1);
    send_to(1);
    assert_int_equal(threads(), 1);
    hold(1, false);
    await(1, 2);
}

/* Two nodes hold their senders, and the third has what is for it. */
static void a_node_that_hangs_holds_no_other(void **state)
{
    (void)state;
    hold(1, true);
    hold(2, true);
    send_to(1);
    await(1, 1);
    send_to(2);
    await(2, 1);
    send_to(3);
    await(3, 1);
    assert_int_equal(threads(), 3);
}

/* What is queued at once, too: the one thread that is idle takes the first. */
static void at_once(void **state)
{
    (void)state;
    hold(1, true);
    hold(2, true);
    for (unsigned node = 1; node < NODES; node++)
        send_to(node);
    await(3, 1);
}

/* One that was there and has no socket any more has left; one that refuses is lost. Neither is told
 * of twice, and nothing more goes there. */
static void those_that_cannot_be_sent_to(void **state)
{
    (void)state;
    send_to(1);
    await_idle();
    assert_int_equal(outbox_peer(&rm, 1).state, RM_PEER_OPEN);
    assert_true(outbox_peer(&rm, 1).reached);
    refuse(1, ENOENT);
    send_to(1);
    await_loss(1);
    assert_int_equal(outbox_peer(&rm, 1).state, RM_PEER_LEFT);
    assert_string_equal(why_told, "it has left, for its tasks have ended");
    refuse(2, ECONNREFUSED);
    send_to(2);
    await_loss(2);
    assert_int_equal(outbox_peer(&rm, 2).state, RM_PEER_LOST);
    assert_false(outbox_peer(&rm, 2).reached);
    outbox_learn(&rm, 2, RM_LEFT); /* a late word: it was lost before */
    assert_int_equal(outbox_peer(&rm, 2).state, RM_PEER_LOST);
    assert_true(outbox_peer(&rm, 2).reached);
    unsigned calls = arrived[1] + arrived[2];
    send_to(1);
    send_to(2);
    assert_true(rm.idle);
    assert_int_equal(arrived[1] + arrived[2], calls);
    assert_int_equal(told[1] + told[2], 2);
}

/* While the step runs its server may still come. At our end it is not waited for, which teardown()
 * asserts. */
static void one_that_never_came(void **state)
{
    (void)state;
    refuse(3, ENOENT);
    send_to(3);
    await(3, 2);
    assert_int_equal(outbox_peer(&rm, 3).state, RM_PEER_OPEN);
}

/* It says itself that it leaves: the server knows, and is not told. */
static void one_that_leaves(void **state)
{
    (void)state;
    outbox_learn(&rm, 3, RM_HEARD);
    assert_int_equal(outbox_peer(&rm, 3).state, RM_PEER_OPEN);
    outbox_learn(&rm, 3, RM_LEFT);
    outbox_learn(&rm, 3, RM_LEFT);
    link_forget(link, 3); /* as its server does */
    assert_int_equal(outbox_peer(&rm, 3).state, RM_PEER_LEFT);
    send_to(3);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(told[3], 0);
    assert_int_equal(arrived[3], 0);
}

/* What there is for a node when its turn comes goes as one message. */
static void one_message(void **state)
{
    (void)state;
    hold(1, true);
    send_to(1);
    await(1, 1);
    for (unsigned i = 0; i < 3; i++)
        send_to(1);
    assert_int_equal(bytes[1], FRAME_BYTES);
    hold(1, false);
    await_idle();
    assert_int_equal(arrived[1], 2);
    assert_int_equal(bytes[1], 3 * FRAME_BYTES);
    assert_int_equal(link_owed(link, 1).frames, 0);
}

/* A message that fails is sent again, with what has come since, until it arrives: nothing is kept
 * but by the link. */
static void one_that_fails(void **state)
{
    (void)state;
    refuse(1, EIO);
    send_to(1);
    await(1, 2);
    assert_int_equal(link_owed(link, 1).frames, 1);
    assert_true(outbox_peer(&rm, 1).failing_since != 0);
    assert_false(rm.idle);
    send_to(1);
    refuse(1, 0);
    await_idle();
    assert_int_equal(bytes[1], 2 * FRAME_BYTES);
    assert_int_equal(link_owed(link, 1).frames, 0);
    assert_true(outbox_peer(&rm, 1).failing_since == 0);
}

/* A connection comes while a message hangs, or fails: it takes all, and the node is not failing. */
static void a_connection_takes_over(void **state)
{
    (void)state;
    refuse(1, EIO);
    hold(1, true);
    send_to(1);
    await(1, 1);
    is_up = true;
    link_again(link, 1, false);
    send_to(1);
    for (unsigned i = 0; i < 2; i++) {
        struct outgoing *o = link_next(link, 1);
        assert_int_equal(o->number, i + 1);
        outgoing_drop(o);
    }
    hold(1, false);
    await_idle();
    assert_int_equal(arrived[1], 1);
    assert_true(outbox_peer(&rm, 1).failing_since == 0);
    assert_int_equal(link_owed(link, 1).frames, 2);
    is_up = false;
    refuse(1, 0);
    link_again(link, 1, true);
    await_idle();
    assert_int_equal(bytes[1], 2 * FRAME_BYTES);
    assert_int_equal(link_owed(link, 1).frames, 0);
}

/* What is said again is sent once, also to a server that was given up, and none is lost for it. */
static void what_is_worth_one_try(void **state)
{
    (void)state;
    refuse(1, ECONNREFUSED);
    send_frame(1, FRAME_OUTSIDE);
    await_idle();
    assert_int_equal(arrived[1], 1);
    assert_int_equal(outbox_peer(&rm, 1).state, RM_PEER_OPEN);
    send_to(1);
    await_loss(1);
    await_idle();
    send_frame(1, FRAME_OUTSIDE);
    await_idle();
    assert_int_equal(arrived[1], 3);
    assert_int_equal(told[1], 1);
}

/* At the end of the server what there is goes out without the loop, within its time. */
static void the_end(void **state)
{
    (void)state;
    refuse(1, EIO);
    hold(2, true);
    for (unsigned node = 1; node < NODES; node++)
        send_to(node);
    await(1, 2);
    send_to(3);
    outbox_drain(&rm, now_ms() + 100);
    assert_int_equal(link_owed(link, 1).frames, 1);
    assert_int_equal(link_owed(link, 2).frames, 1);
    assert_int_equal(link_owed(link, 3).frames, 0);
    hold(2, false);
    refuse(1, 0);
}

/* What a thread has said just before its end is heard after that, and begins nothing. */
static void after_the_end(void **state)
{
    bool posted = false;
    (void)state;
    hold(1, true);
    send_to(1);
    await(1, 1);
    send_to(1);
    hold(1, false);
    while (!posted) {
        pthread_mutex_lock(&rm.lock);
        posted = rm.posted;
        pthread_mutex_unlock(&rm.lock);
    }
    assert_true(outbox_close(&rm, now_ms() + WAIT_MS));
    handoff_run(rm.handoff);
    assert_int_equal(link_owed(link, 1).frames, 1);
    assert_int_equal(arrived[1], 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_thread_is_enough),
        TEST(a_node_has_one_thread),
        TEST(a_node_that_hangs_holds_no_other),
        TEST(at_once),
        TEST(those_that_cannot_be_sent_to),
        TEST(one_that_never_came),
        TEST(one_that_leaves),
        TEST(one_message),
        TEST(one_that_fails),
        TEST(a_connection_takes_over),
        TEST(what_is_worth_one_try),
        TEST(the_end),
        TEST(after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
