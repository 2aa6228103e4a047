/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the threads that send: one does, until a node holds it. And of what becomes of a server
 * that cannot be sent to.
 */
#include "plugins/slurm/rm_slurm.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 4, WAIT_MS = 30000, ROUNDS = 20 };

/* ---- slurmd ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool held[NODES];        /* a call to that node does not return */
static unsigned arrived[NODES]; /* calls that have come */
static int fails[NODES];        /* how calls to that node end; 0: well */

int slurm_abi_forward_data(char **nodelist, char *to, uint32_t len, const char *data)
{
    unsigned node = (unsigned)((*nodelist)[1] - '0');
    (void)to, (void)len, (void)data;
    pthread_mutex_lock(&lock);
    arrived[node]++;
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

static void await(unsigned node, unsigned count)
{
    pthread_mutex_lock(&lock);
    while (arrived[node] < count)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- the outbox ---- */

static struct boot_node nodes[NODES] = {
    {.name = (char *)"n0"}, {.name = (char *)"n1"}, {.name = (char *)"n2"}, {.name = (char *)"n3"}};
static struct boot boot = {.nodes = nodes, .nnodes = NODES};
static char address[] = "/s";
static struct rm rm;
static struct event_base *base;
static unsigned told[NODES]; /* that it is lost */
static char why_told[64];

static void on_lost(void *arg, uint32_t node, const char *why)
{
    (void)arg;
    told[node]++;
    snprintf(why_told, sizeof why_told, "%s", why);
}

static int setup(void **state)
{
    pthread_condattr_t attr;
    (void)state;
    memset(arrived, 0, sizeof arrived);
    memset(fails, 0, sizeof fails);
    memset(told, 0, sizeof told);
    why_told[0] = '\0';
    base = event_base_new();
    rm = (struct rm){.boot = &boot,
                     .address = address,
                     .peer_ms = WAIT_MS,
                     .opened = now_ms(),
                     .host = {.lost = on_lost},
                     .handoff = base != NULL ? handoff_new(base) : NULL};
    if (rm.handoff == NULL)
        return -1;
    pthread_mutex_init(&rm.lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rm.wake, &attr);
    pthread_cond_init(&rm.ender.wake, &attr);
    pthread_condattr_destroy(&attr);
    return outbox_init(&rm) ? outbox_start(&rm) : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++)
        hold(i, false);
    pthread_mutex_lock(&rm.lock);
    rm.closing = true;
    rm.close_by = now_ms() + WAIT_MS;
    pthread_cond_broadcast(&rm.wake);
    pthread_mutex_unlock(&rm.lock);
    bool all = outbox_join(&rm, now_ms() + WAIT_MS);
    assert_true(outbox_idle(&rm));
    outbox_free(&rm);
    handoff_free(rm.handoff);
    event_base_free(base);
    pthread_mutex_destroy(&rm.lock);
    pthread_cond_destroy(&rm.wake);
    pthread_cond_destroy(&rm.ender.wake);
    return all ? 0 : -1;
}

static void send_to(unsigned node)
{
    outbox_send(&rm, node, strdup("x"), 1, CARE_MUST);
}

static unsigned threads(void)
{
    pthread_mutex_lock(&rm.lock);
    unsigned n = rm.nsenders;
    pthread_mutex_unlock(&rm.lock);
    return n;
}

static void await_idle(void)
{
    bool idle = false;
    while (!idle) {
        pthread_mutex_lock(&rm.lock);
        idle = outbox_idle(&rm) && rm.nsending == 0;
        pthread_mutex_unlock(&rm.lock);
    }
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
    assert_true(outbox_idle(&rm));
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
    assert_int_equal(outbox_peer(&rm, 3).state, RM_PEER_LEFT);
    send_to(3);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(told[3], 0);
    assert_int_equal(arrived[3], 0);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
