/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the count of processes that wait for a debugger, on the first server of two: what all
 * servers are told, and when.
 *
 * Two nodes of two ranks each. The test plays the other server and a process that has spawned.
 */
#include "common/server/status/stopped.h"

#include "common/server/status/stalled.h"
#include "common/server/tasks/signals.h"
#include "common/util/test_cmocka.h"

#include <string.h>

static uint32_t r0[] = {0, 1}, r1[] = {2, 3};
static struct boot_node nodes[] = {{"c07", 2, r0, 0, 0}, {"c08", 2, r1, 0, 0}};
static struct server server;
static struct task tasks[2];
static unsigned nsaid, nready, nanswers, ncontinued;

/* ---- the parts of the server that stopped.c calls ---- */

static void ready(struct server *s)
{
    (void)s;
    nready++;
}

static const struct server_hooks hooks = {.ready = ready};

uint32_t server_first(const struct server *s)
{
    (void)s;
    return 0;
}

void server_say(struct server *s, struct wire_out *message)
{
    (void)s;
    nsaid++;
    wire_out_free(message);
}

void server_stand_still(struct server *s)
{
    (void)s;
}

void stalled(void *s, uint64_t seconds, const char *text)
{
    (void)s, (void)seconds, (void)text;
}

void signals_continue(struct server *s, uint32_t slot)
{
    (void)s, (void)slot;
    ncontinued++;
}

void link_send(struct link *link, uint32_t node, struct wire_out *frame)
{
    (void)link, (void)node, (void)frame;
    fail_msg("the first server tells itself");
}

void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len)
{
    (void)asks, (void)node, (void)id, (void)data, (void)len;
    assert_int_equal(status, 0);
    nanswers++;
}

/* ---- the tests ---- */

static int begin(void **state)
{
    struct err err = {0};
    (void)state;
    memset(tasks, 0, sizeof tasks);
    server = (struct server){
        .boot = {.nnodes = 2, .nodes = nodes, .ntasks = 4}, .tasks = tasks, .hooks = &hooks};
    nsaid = nready = nanswers = ncontinued = 0;
    return stopped_open(&server, &err);
}

static int end(void **state)
{
    (void)state;
    stopped_close(&server);
    return 0;
}

/* @param n how many of the other node wait */
static void other_node(uint32_t n, const char *where)
{
    struct wire_out body = {0};
    wire_put_u32(&body, n);
    wire_put_str(&body, where);
    stopped_receive(&server, 1, body.data, body.len);
    wire_out_free(&body);
}

static void all_wait(void)
{
    stopped_ready(&server, STOP_ALL, "pmix-init");
    other_node(2, "pmix-init");
    assert_int_equal(server.stopped.n, 4);
    assert_true(server.stopped.ready);
}

/* The first, and all, are told; who asks is answered then. */
static void all_are_ready_once(void **state)
{
    (void)state;
    stopped_serve(&server, 1, 7, NULL, 0);
    stopped_ready(&server, 1, "pmix-init");
    assert_int_equal(nsaid, 1);
    all_wait();
    assert_int_equal(nready, 1);
    assert_int_equal(nanswers, 1);
    stopped_ready(&server, STOP_ALL, "pmix-init"); /* and again */
    assert_int_equal(nready, 1);
}

/* Some are released here: the others wait where they did. */
static void some_are_released(void **state)
{
    (void)state;
    all_wait();
    stopped_release(&server, 1, 1);
    assert_int_equal(server.stopped.n, 3);
    assert_string_equal(server.stopped.where, "pmix-init");
    stopped_release(&server, 1, 1);
    stopped_release(&server, 77, 77);
    assert_int_equal(server.stopped.n, 3);
    other_node(0, "pmix-init");
    stopped_release(&server, 0, UINT32_MAX);
    assert_int_equal(server.stopped.n, 0);
    assert_string_equal(server.stopped.where, "");
    assert_int_equal(ncontinued, 0);
}

/* A process that waits is killed: nobody waits for its release. */
static void one_is_killed(void **state)
{
    (void)state;
    all_wait();
    tasks[0].state = TASK_ENDED;
    stopped_task_ended(&server, 0);
    assert_int_equal(server.stopped.n, 3);
    assert_false(server.stopped.ready);
    assert_string_equal(server.stopped.where, "pmix-init");
}

/* More than a node has, and half a message. */
static void wrong_counts(void **state)
{
    (void)state;
    other_node(3, "pmix-init");
    stopped_receive(&server, 1, "\0\0", 2);
    assert_int_equal(server.stopped.n, 0);
    assert_int_equal(nsaid, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_ready_once),
        TEST(some_are_released),
        TEST(one_is_killed),
        TEST(wrong_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
