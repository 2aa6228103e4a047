/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of goodbyes: many servers in one process, of which some leave, one after another or all at
 * once; those that stay come to know of all of them, and nobody says much. The test plays the link,
 * the back end, and what departed.c does with the news.
 */
#include "common/nspace/foreign.h"
#include "common/server/peers/absent.h"
#include "common/server/peers/departed.h"
#include "common/server/steps/steps.h"
#include "common/server/trees/test_frames.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 300, ARITY = 3 };

static int64_t now = 1000;
static struct server servers[MANY];
static bool there[MANY], lost[MANY];
static bool knows[MANY][MANY], early[MANY][MANY]; /* that the second one has left */
static uint32_t ranks[MANY], ndropped;
static uint64_t dropped[MANY]; /* frames to it that did not arrive */
static struct boot_node nodes[MANY];
static struct nspace *nspace;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
    return 0;
}

/* A server is its own link and back end. */
void link_send(struct link *link, uint32_t node, struct wire_out *frame)
{
    struct server *server = (struct server *)link;
    if (there[node]) {
        frames_send(server->boot.node, node, frame);
    } else {
        ndropped++;
        dropped[node]++;
    }
    wire_out_free(frame);
}

bool engine_is_lost(const struct engine *engine, uint32_t node)
{
    (void)engine;
    return lost[node];
}

void steps_hand_over(struct server *server, uint32_t node)
{
    (void)server, (void)node;
}

static struct rm_peer peer_of(struct rm *rm, uint32_t node)
{
    (void)rm;
    return (struct rm_peer){.dropped = dropped[node]};
}

/* What a server reads while it says goodbye: where the test gives it a loop, which is itself. */
int event_base_loop(struct event_base *base, int flags)
{
    struct server *server = (struct server *)base;
    (void)flags;
    for (uint32_t i = 0; server != NULL && i < nframes; i++)
        if (frames[i].to == server->boot.node && frames[i].data != NULL)
            absent_receive(server, frames[i].from, (char *)frames[i].data + 1, frames[i].len - 1);
    return 0;
}

void departed_left(struct server *server, uint32_t node, bool is_early, const char *why)
{
    (void)why;
    assert_false(knows[server->boot.node][node]);
    knows[server->boot.node][node] = true;
    early[server->boot.node][node] = is_early;
}

static unsigned warnings;

static void quiet(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)text;
    warnings += level == LOG_LEVEL_WARNING;
}

static int begin(void **state)
{
    static const struct rm_ops ops = {.peer = peer_of};
    (void)state;
    frames_open();
    log_open(quiet, NULL, LOG_LEVEL_WARNING, NULL);
    ndropped = warnings = 0;
    memset(knows, 0, sizeof knows);
    memset(early, 0, sizeof early);
    memset(lost, 0, sizeof lost);
    memset(dropped, 0, sizeof dropped);
    for (uint32_t i = 0; i < MANY; i++) {
        ranks[i] = i;
        nodes[i] = (struct boot_node){"c", 1, &ranks[i], 0, 0};
        there[i] = true;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        servers[i] = (struct server){.rm_ops = &ops,
                                     .boot = {.nspace = "slurm.4711.0",
                                              .node = i,
                                              .nnodes = MANY,
                                              .ntasks = MANY,
                                              .nodes = nodes}};
        servers[i].link = (struct link *)&servers[i];
        servers[i].rm = (struct rm *)&servers[i];
        servers[i].conf.tree_arity = ARITY;
        servers[i].tasks = calloc(1, sizeof *servers[i].tasks);
        assert_int_equal(absent_open(&servers[i]), 0);
    }
    nspace = nspace_new(&servers[0].boot);
    for (uint32_t i = 0; i < MANY; i++)
        servers[i].nspace = nspace;
    return nspace == NULL;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MANY; i++) {
        absent_close(&servers[i]);
        free(servers[i].tasks);
    }
    frames_close();
    nspaces_free(nspace);
    return 0;
}

/* Delivers what was sent, and what that brings about in the time. */
static void run_for(int64_t ms)
{
    for (int64_t until = now + ms; now <= until; now += 10) {
        for (struct test_frame f; frames_take(&f); free(f.data)) {
            if (!there[f.to])
                continue; /* handed over, and not read any more */
            absent_heard(&servers[f.to], f.from, FRAME_ABSENT);
            absent_receive(&servers[f.to], f.from, (char *)f.data + 1, f.len - 1);
        }
        for (uint32_t i = 0; i < MANY; i++)
            if (there[i])
                timers_run(&servers[i].timers);
    }
}

/* @return whether it finds itself to be the last one */
static bool leave(uint32_t node)
{
    servers[node].told_to_leave = true;
    bool last = absent_tell(&servers[node]);
    there[node] = false;
    return last;
}

static void check_known(void)
{
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t k = 0; there[i] && k < MANY; k++)
            if (knows[i][k] != !there[k])
                fail_msg("server %u does not know that %u is %s", i, k,
                         there[k] ? "there" : "gone");
}

static void test_one_is_told_once(void **state)
{
    (void)state;
    leave(MANY / 2);
    assert_int_equal(nframes, 1); /* to one server */
    run_for(1000);
    check_known();
    assert_int_equal(nframes, MANY - 1); /* to each of the others */
}

/* Of servers that died nothing is heard, and those below them in the tree hear all the same. */
static void test_the_tree_goes_past_lost_ones(void **state)
{
    (void)state;
    for (uint32_t node = 1; node < MANY / 2; node += 2) { /* interior ones */
        lost[node] = true;
        there[node] = false;
    }
    leave(MANY - 1);
    run_for(1000);
    for (uint32_t i = 0; i < MANY - 1; i++)
        assert_int_equal(knows[i][MANY - 1], there[i]);
}

/* Interior ones of the tree, its root, and leaves, in any order: the tree holds together. */
static void test_many_leave_one_after_another(void **state)
{
    unsigned seed = 1;
    (void)state;
    for (uint32_t k = 0; k < MANY - 2; k++) {
        uint32_t node = (uint32_t)rand_r(&seed) % MANY;
        while (!there[node])
            node = (node + 1) % MANY;
        assert_false(leave(node));
        run_for(k % 5 == 0 ? 500 : 0); /* now and then all have heard of it */
    }
    run_for(1000);
    check_known();
    uint32_t first = 0;
    while (!there[first])
        first++;
    assert_false(leave(first));
    run_for(1000);
    while (!there[first])
        first++;
    assert_true(leave(first));
}

/* All but the last one at once, as at the end of a step: little is said, also by the last one. */
static void test_all_leave_at_once(void **state)
{
    (void)state;
    for (uint32_t node = MANY - 1; node > 0; node--)
        assert_false(leave(node));
    assert_true(nframes <= MANY);
    run_for(1000);
    assert_true(nframes + ndropped <= 2 * MANY);
    leave(0);
    assert_true(nframes + ndropped <= 3 * MANY);
}

/* From the root on: whoever leaves finds another one above it, or few are tried in vain. */
static void test_all_leave_from_the_root_on(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < MANY; node++)
        leave(node);
    assert_true(nframes <= MANY);
    assert_true(ndropped <= 9 * MANY);
}

/* The first ones say goodbye to each other: those that stay know of all of them all the same. */
static void test_some_leave_at_once_to_each_other(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < 2; node++) {
        servers[node].told_to_leave = servers[node].leaving = true;
        servers[node].base = (struct event_base *)&servers[node];
    }
    assert_false(absent_tell(&servers[1])); /* to 0 */
    assert_false(absent_tell(&servers[0])); /* to 1; then it reads what 1 has said */
    there[0] = there[1] = false;
    run_for(1000);
    check_known();
}

/* The first one has said goodbye and is on its way out when it is told of the second. */
static void test_one_that_has_said_goodbye_says_the_rest(void **state)
{
    (void)state;
    servers[0].told_to_leave = servers[0].leaving = true;
    absent_tell(&servers[0]); /* to 1 */
    leave(1);                 /* to 0 */
    absent_receive(&servers[0], 1, (char *)frames[1].data + 1, frames[1].len - 1);
    absent_tell_rest(&servers[0]);
    assert_int_equal(nframes, 3);
    absent_tell_rest(&servers[0]); /* nothing has come since */
    assert_int_equal(nframes, 3);
    there[0] = false;
    run_for(1000);
    check_known();
}

/* Two are left, and say goodbye to each other at once. */
static void test_the_last_two_know_that_they_are(void **state)
{
    (void)state;
    servers[0].boot.nnodes = servers[1].boot.nnodes = 2;
    servers[0].told_to_leave = servers[0].leaving = true;
    assert_false(absent_tell(&servers[0])); /* to 1 */
    uint32_t said = nframes;
    assert_false(leave(1)); /* to 0 */
    absent_receive(&servers[0], 1, (char *)frames[said].data + 1, frames[said].len - 1);
    assert_true(absent_tell_rest(&servers[0]));
}

/* Its own goodbye may come back with others', which count. */
static void test_its_own_goodbye_comes_back(void **state)
{
    struct wire_out body = {0};
    struct procset set = {0};
    (void)state;
    servers[0].told_to_leave = servers[0].leaving = true;
    absent_tell(&servers[0]);
    procset_add(&set, "slurm.4711.0", 0, 0);
    procset_add(&set, "slurm.4711.0", 2, 2);
    procset_canonical(&set);
    procset_write(&set, &body);
    wire_put_u32(&body, 1); /* a task of its own has failed */
    for (uint32_t k = 0; k < 4; k++)
        wire_put_u32(&body, k == 3 ? 127 : 0);
    absent_receive(&servers[0], 1, body.data, body.len);
    wire_out_free(&body);
    procset_free(&set);
    assert_int_equal(warnings, 0);
    absent_tell_rest(&servers[0]);
    there[0] = there[2] = false;
    run_for(1000);
    check_known();
    uint32_t said = nframes;
    absent_heard(&servers[1], 2, FRAME_CONTRIB); /* what it had said before comes late */
    assert_int_equal(nframes, said);
}

/* When all others have left nobody is sought. */
static void test_the_last_one_does_not_seek(void **state)
{
    (void)state;
    for (uint32_t node = 1; node < MANY; node++)
        leave(node);
    run_for(1000);
    uint32_t said = nframes + ndropped;
    servers[0].tasks[0] = (struct task){.state = TASK_EARLY, .code = 1};
    leave(0); /* the clock stands: it would not come back */
    assert_int_equal(nframes + ndropped, said);
}

static void test_a_task_that_failed_early_is_told_of(void **state)
{
    (void)state;
    servers[7].tasks[0] = (struct task){.state = TASK_EARLY, .code = 127};
    leave(7);
    leave(8);
    run_for(1000);
    check_known();
    assert_true(early[1][7] && early[250][7]);
    assert_false(early[1][8]);
}

static void test_one_that_comes_late_is_told(void **state)
{
    (void)state;
    there[299] = false; /* has not started */
    leave(20);
    run_for(1000);
    assert_false(knows[299][20]);
    there[299] = true;
    absent_heard(&servers[5], 299, FRAME_CONTRIB);
    run_for(1000);
    assert_true(knows[299][20]);
}

/* What makes no sense is dropped as a whole. */
static void test_nonsense(void **state)
{
    const struct {
        const char *nspace;
        uint32_t first, last, cause[2], more;
    } cases[] = {
        {"slurm.4711.1", 3, 3, {3, 3}, 0},          {"slurm.4711.0", 3, MANY, {3, 3}, 0},
        {"slurm.4711.0", 0, 3, {3, 3}, 0},          {"slurm.4711.0", 3, 3, {3, 4}, 0},
        {"slurm.4711.0", 3, 3, {0, 0}, 0},          {"slurm.4711.0", 3, 3, {3, 3}, 1},
        {"slurm.4711.0", 3, 3, {3, UINT32_MAX}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wire_out body = {0};
        struct procset set = {0};
        procset_add(&set, cases[i].nspace, cases[i].first, cases[i].last);
        procset_canonical(&set);
        procset_write(&set, &body);
        wire_put_u32(&body, 1);
        wire_put_u32(&body, cases[i].cause[0]);
        wire_put_u32(&body, cases[i].cause[1]);
        wire_put_u32(&body, 0);
        wire_put_u32(&body, 1);
        for (uint32_t k = 0; k < cases[i].more; k++)
            wire_put_u8(&body, 0);
        absent_receive(&servers[0], 1, body.data, body.len);
        absent_receive(&servers[0], 1, body.data, body.len / 2);
        wire_out_free(&body);
        procset_free(&set);
        for (uint32_t k = 0; k < MANY; k++)
            assert_false(knows[0][k]);
        assert_int_equal(timers_wait(&servers[0].timers), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(test_the_tree_goes_past_lost_ones, begin, end),
        cmocka_unit_test_setup_teardown(test_many_leave_one_after_another, begin, end),
        cmocka_unit_test_setup_teardown(test_all_leave_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_all_leave_from_the_root_on, begin, end),
        cmocka_unit_test_setup_teardown(test_some_leave_at_once_to_each_other, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_has_said_goodbye_says_the_rest, begin, end),
        cmocka_unit_test_setup_teardown(test_the_last_two_know_that_they_are, begin, end),
        cmocka_unit_test_setup_teardown(test_its_own_goodbye_comes_back, begin, end),
        cmocka_unit_test_setup_teardown(test_the_last_one_does_not_seek, begin, end),
        cmocka_unit_test_setup_teardown(test_a_task_that_failed_early_is_told_of, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_comes_late_is_told, begin, end),
        cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
