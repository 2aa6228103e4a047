/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the count of processes that wait for a debugger: what all servers are told, and when.
 *
 * Nodes of two ranks each: two, of which this one is the first, or three, of which this one is the
 * second or the last. The test plays the other servers, the view and a process that has spawned.
 */
#include "common/server/status/stopped.h"

#include "common/server/status/stalled.h"
#include "common/server/tasks/signals.h"
#include "common/util/test_cmocka.h"
#include "common/view/view.h"

#include <stdio.h>
#include <string.h>

static uint32_t r0[] = {0, 1}, r1[] = {2, 3}, r2[] = {4, 5};
static struct boot_node nodes[] = {{"c07", 2, r0, 0}, {"c08", 2, r1, 0}, {"c09", 2, r2, 0}};
static struct server server;
static struct task tasks[2];
static unsigned nsaid, nready, nanswers, ncontinued, ntold;
static bool out[3];      /* servers that are not in the view */
static uint32_t last[4]; /* what the head was told last: its node, and the numbers */
static char last_where[STOPPED_WHERE_SIZE], ready_where[STOPPED_WHERE_SIZE];

/* ---- the parts of the server that stopped.c calls ---- */

static void ready(struct server *s)
{
    snprintf(ready_where, sizeof ready_where, "%s", s->stopped.where);
    nready++;
}

static const struct server_hooks hooks = {.ready = ready};

uint32_t view_head(const struct view *view)
{
    uint32_t head = 0;
    (void)view;
    while (out[head])
        head++;
    return head;
}

bool view_has(const struct view *view, uint32_t node)
{
    (void)view;
    return !out[node];
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
    struct wire_in in;
    (void)link;
    assert_int_not_equal(node, server.boot.node);
    wire_in_init(&in, frame->data, frame->len);
    assert_int_equal(wire_get_u8(&in), FRAME_STOPPED);
    last[0] = node;
    for (int i = 1; i < 4; i++)
        last[i] = wire_get_u32(&in);
    wire_get_str(&in, last_where, sizeof last_where);
    ntold++;
    wire_out_free(frame);
}

void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len)
{
    (void)asks, (void)node, (void)id, (void)data, (void)len;
    assert_int_equal(status, 0);
    nanswers++;
}

/* ---- the tests ---- */

static int open_of(uint32_t node, uint32_t nnodes)
{
    struct err err = {0};
    memset(tasks, 0, sizeof tasks);
    memset(out, 0, sizeof out);
    memset(last, 0, sizeof last);
    memset(last_where, 0, sizeof last_where);
    memset(ready_where, 0, sizeof ready_where);
    server = (struct server){
        .boot = {.node = node, .nnodes = nnodes, .nodes = nodes, .ntasks = 2 * nnodes},
        .tasks = tasks,
        .hooks = &hooks};
    nsaid = nready = nanswers = ncontinued = ntold = 0;
    return stopped_open(&server, &err);
}

static int begin(void **state)
{
    (void)state;
    return open_of(0, 2);
}

static int begin_second(void **state)
{
    (void)state;
    return open_of(1, 3);
}

static int begin_third(void **state)
{
    (void)state;
    return open_of(2, 3);
}

static int end(void **state)
{
    (void)state;
    stopped_close(&server);
    return 0;
}

/* @return the body of a STOPPED */
static struct wire_out counts(uint32_t n, uint32_t gone, uint32_t released, const char *where)
{
    struct wire_out body = {0};
    wire_put_u32(&body, n);
    wire_put_u32(&body, gone);
    wire_put_u32(&body, released);
    wire_put_str(&body, where);
    return body;
}

static void node_has_at(uint32_t node, uint32_t n, uint32_t gone, const char *where)
{
    struct wire_out body = counts(n, gone, 0, where);
    stopped_receive(&server, node, body.data, body.len);
    wire_out_free(&body);
}

/* @param n how many of a node wait */
static void node_has(uint32_t node, uint32_t n, uint32_t gone, uint32_t released)
{
    struct wire_out body = counts(n, gone, released, "pmix-init");
    stopped_receive(&server, node, body.data, body.len);
    wire_out_free(&body);
}

static void other_node(uint32_t n)
{
    node_has(1, n, 0, 0);
}

/* The head says so. */
static void said(uint32_t n, uint32_t gone)
{
    struct wire_out body = counts(n, gone, 0, "pmix-init");
    stopped_said(&server, 0, body.data, body.len);
    wire_out_free(&body);
}

static void is_lost(uint32_t node)
{
    struct ranges lost = {0}, none = {0};
    assert_int_equal(ranges_put(&lost, node), 0);
    out[node] = true;
    stopped_view_changed(&server, &lost, &none);
    ranges_free(&lost);
}

static void ends(uint32_t slot)
{
    tasks[slot].state = TASK_TOLD;
    stopped_task_ended(&server, slot);
}

static void all_wait(void)
{
    stopped_ready(&server, STOP_ALL, "pmix-init");
    other_node(2);
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
    node_has(1, 0, 0, 2);
    stopped_release(&server, 0, UINT32_MAX);
    assert_int_equal(server.stopped.n, 0);
    assert_string_equal(server.stopped.where, "");
    assert_int_equal(ncontinued, 0);
}

/* A process that waits is killed: nobody waits for its release, and it is not awaited. */
static void one_is_killed(void **state)
{
    (void)state;
    all_wait();
    ends(0);
    assert_int_equal(server.stopped.n, 3);
    assert_true(server.stopped.ready);
    assert_int_equal(nready, 1);
    assert_string_equal(server.stopped.where, "pmix-init");
}

/* Those that die before they wait are not awaited, whether others wait by then or not. */
static void some_die_before(void **state)
{
    (void)state;
    ends(0);
    assert_int_equal(nsaid, 0);
    other_node(1);
    stopped_ready(&server, 1, "pmix-init");
    assert_int_equal(nready, 0);
    node_has(1, 1, 1, 0);
    assert_int_equal(nready, 1);
    assert_int_equal(server.stopped.n, 2);
}

static void the_last_one_dies(void **state)
{
    (void)state;
    other_node(2);
    stopped_ready(&server, 0, "pmix-init");
    assert_int_equal(nready, 0);
    ends(1);
    assert_int_equal(nready, 1);
}

/* None of this node waits. */
static void a_whole_node_dies(void **state)
{
    (void)state;
    ends(0);
    ends(1);
    assert_int_equal(nsaid, 0);
    other_node(2);
    assert_int_equal(nready, 1);
}

static void a_server_is_lost(void **state)
{
    (void)state;
    stopped_ready(&server, STOP_ALL, "pmix-init");
    other_node(1);
    assert_int_equal(nready, 0);
    is_lost(1);
    assert_int_equal(nready, 1);
    assert_int_equal(server.stopped.n, 2);
}

static void a_server_is_lost_before_any_waits(void **state)
{
    (void)state;
    is_lost(1);
    stopped_ready(&server, STOP_ALL, "pmix-init");
    assert_int_equal(nready, 1);
}

/* One that was released and ends makes the others ready no second time. */
static void one_goes_on_and_ends(void **state)
{
    (void)state;
    all_wait();
    stopped_release(&server, 1, 1);
    ends(1);
    node_has(1, 1, 0, 1);
    is_lost(1);
    assert_int_equal(server.stopped.n, 1);
    assert_false(server.stopped.ready);
    assert_int_equal(nready, 1);
}

static void told(uint32_t node, uint32_t n, uint32_t gone, unsigned times)
{
    assert_int_equal(ntold, times);
    assert_int_equal(last[0], node);
    assert_int_equal(last[1], n);
    assert_int_equal(last[2], gone);
}

/* A new head hears all again, says nothing before, and no process is ready twice. */
static void the_head_is_lost(void **state)
{
    (void)state;
    stopped_ready(&server, STOP_ALL, "pmix-init");
    told(0, 2, 0, 1);
    said(2, 0);
    said(5, 0);
    assert_int_equal(nready, 0);
    is_lost(0);
    assert_int_equal(ntold, 1);
    assert_int_equal(nsaid, 0);
    node_has(2, 1, 0, 0);
    assert_int_equal(nsaid, 1);
    assert_int_equal(server.stopped.n, 3);
    assert_int_equal(nready, 0);
    node_has(2, 2, 0, 0);
    assert_int_equal(nready, 1);
    assert_int_equal(server.stopped.n, 4);
}

/* Also what has no process that waits, as the new head has to know. */
static void another_server_is_the_head(void **state)
{
    (void)state;
    said(1, 0);
    assert_int_equal(ntold, 0);
    is_lost(0);
    told(1, 0, 0, 1);
}

/* Its report came here before this server had entered the view. */
static void another_is_quicker(void **state)
{
    (void)state;
    said(2, 0);
    node_has(2, 2, 0, 0);
    assert_int_equal(nsaid, 0);
    is_lost(0);
    assert_int_equal(nsaid, 0);
    stopped_ready(&server, STOP_ALL, "pmix-init");
    assert_int_equal(nready, 1);
    assert_int_equal(server.stopped.n, 4);
}

/* A process here has ended when no server had to know. */
static void the_others_begin_to_wait(void **state)
{
    (void)state;
    ends(0);
    ends(1);
    assert_int_equal(ntold, 0);
    said(1, 0);
    told(0, 0, 2, 1);
    said(4, 2);
    assert_int_equal(nready, 1);
}

/* The server of the last one that ends does not know where the others wait. */
static void where_is_kept(void **state)
{
    (void)state;
    stopped_ready(&server, STOP_ALL, "pmix-init");
    node_has_at(1, 0, 2, "");
    assert_int_equal(nready, 1);
    assert_string_equal(ready_where, "pmix-init");
}

/* A process here ends before the head has said that another one here waits. */
static void one_ends_before_the_word(void **state)
{
    (void)state;
    stopped_ready(&server, 2, "pmix-init");
    told(0, 1, 0, 1);
    assert_string_equal(last_where, "pmix-init");
    server.stopped.stop.where = STOP_IN_INIT;
    ends(1);
    told(0, 1, 1, 2);
    assert_string_equal(last_where, "pmix-init");
}

/* The head is lost before it has said that one waits. */
static void the_head_is_lost_before_the_word(void **state)
{
    (void)state;
    stopped_ready(&server, 4, "pmix-init");
    told(0, 1, 0, 1);
    is_lost(0);
    told(1, 1, 0, 2);
    assert_string_equal(last_where, "pmix-init");
}

/* More than a node has, and half a message. */
static void wrong_counts(void **state)
{
    (void)state;
    other_node(3);
    node_has(1, 1, UINT32_MAX, 0);
    stopped_receive(&server, 1, "\0\0", 2);
    assert_int_equal(server.stopped.n, 0);
    assert_int_equal(nsaid, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
#define THIRD(t) cmocka_unit_test_setup_teardown(t, begin_third, end)
#define SECOND(t) cmocka_unit_test_setup_teardown(t, begin_second, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_ready_once),
        TEST(some_are_released),
        TEST(one_is_killed),
        TEST(some_die_before),
        TEST(the_last_one_dies),
        TEST(a_whole_node_dies),
        TEST(a_server_is_lost),
        TEST(a_server_is_lost_before_any_waits),
        TEST(one_goes_on_and_ends),
        SECOND(the_head_is_lost),
        SECOND(another_is_quicker),
        SECOND(the_others_begin_to_wait),
        SECOND(one_ends_before_the_word),
        THIRD(another_server_is_the_head),
        THIRD(the_head_is_lost_before_the_word),
        TEST(where_is_kept),
        TEST(wrong_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
