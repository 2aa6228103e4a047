/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how the loss of tasks is told, on a clock of their own: at once, or after the cause that
 * another node's server is to tell.
 *
 * Three nodes of two ranks each; the server is that of the second one. It is not run: the test
 * plays the loop, and the parts of the server that tasks.c calls.
 */
#include "common/notify/loss.h"
#include "common/server/ending.h"
#include "common/server/tasks.h"
#include "common/util/log.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pmix_common.h>

enum { TOGETHER_MS = 5, TURN_MS = 20, JUST_MS = 1000 + TURN_MS /* for the second node */ };

static uint32_t r0[] = {0, 1}, r1[] = {2, 3}, r2[] = {4, 5};
static struct boot_node nodes[] = {
    {"c07", 2, r0, 0, 0}, {"c08", 2, r1, 0, 0}, {"c09", 2, r2, 0, 0}};

static int64_t now;
static char said[512]; /* the last error */
static unsigned nerrors, nends, nlosses, naborts;
static uint32_t through;  /* the node that is to say why, of the last end */
static char why[512];     /* the last end's reason */
static unsigned status;   /* and the step's exit status */
static uint32_t departed; /* a node whose server has left */
static struct task tasks[2];
static struct server server;

/* Instead of libc's: now_ms() is all that asks for it. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
    return 0;
}

static void note_end(const struct rm_ending *ending, uint32_t node)
{
    nends++;
    through = node;
    status = ending->status;
    snprintf(why, sizeof why, "%s", ending->why);
    server.ending = true;
}

void server_end_step(struct server *s, const struct rm_ending *ending, const char *tell)
{
    (void)s;
    assert_null(tell);
    note_end(ending, BOOT_NO_NODE);
}

bool server_has_left(const struct server *s, uint32_t node)
{
    (void)s;
    return node == departed;
}

void server_end_step_through(struct server *s, const struct rm_ending *ending, uint32_t node)
{
    (void)s;
    note_end(ending, node);
}

void server_resume(struct server *s)
{
    (void)s;
}

void loss_task(struct server *s, uint32_t slot, const char *text)
{
    (void)s, (void)slot, (void)text;
    nlosses++;
}

void engine_local_loss(struct engine *engine)
{
    (void)engine;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level != LOG_LEVEL_ERROR)
        return;
    nerrors++;
    snprintf(said, sizeof said, "%s", text);
}

static int begin(void **state)
{
    (void)state;
    now = 10000;
    nerrors = nends = nlosses = 0;
    said[0] = why[0] = '\0';
    status = 0;
    departed = BOOT_NO_NODE;
    memset(tasks, 0, sizeof tasks);
    tasks[0].state = tasks[1].state = TASK_CONNECTED;
    server = (struct server){.tasks = tasks,
                             .boot = {.nspace = "slurm.4711.0",
                                      .label = "4711.0",
                                      .node = 1,
                                      .nnodes = 3,
                                      .ntasks = 6,
                                      .nodes = nodes}};
    server.conf.on_task_loss = CONF_TASK_LOSS_END_STEP;
    server.nspace = nspace_new(&server.boot);
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return server.nspace == NULL;
}

static int end(void **state)
{
    (void)state;
    nspace_free(server.nspace);
    return 0;
}

static void again(void **state)
{
    end(state);
    begin(state);
}

/* Time passes, and the loop ticks when it is asked to. */
static void run(int64_t ms)
{
    int64_t until = now + ms;
    for (;;) {
        int64_t next = tasks_next(&server, now);
        if (next < 0 || now + next > until)
            break;
        now += next;
        tasks_tick(&server, now);
    }
    now = until;
}

/* So many ends of the step are asked for once that time has passed. */
static void ends_after(int64_t ms, unsigned n)
{
    run(ms);
    assert_int_equal(nends, n);
}

/* An operation fails here, since a rank has ended. */
static void fail_with(int32_t failure, uint32_t rank)
{
    struct procset gone = {0};
    procset_add(&gone, server.boot.nspace, rank, rank);
    procset_canonical(&gone);
    tasks_bereft(&server, failure, &gone);
    procset_free(&gone);
}

static void fail_for(uint32_t rank)
{
    fail_with(PMIX_ERR_LOST_CONNECTION, rank);
}

static void a_loss_is_told_at_once(void **state)
{
    struct boot_setting unit = {"unit", "job"};
    tasks_ended(&server, 0, 0, 1);
    assert_false(tasks_await_cause(&server));
    ends_after(TOGETHER_MS - 1, 0);
    ends_after(1, 1);
    assert_int_equal(nerrors, 1);
    assert_string_equal(said, "rank 2 on c08 ended with exit code 1 and without PMIx_Finalize; "
                              "ending the step");
    again(state);
    /* the word of the resource manager's users */
    server.boot.settings = &unit;
    server.boot.nsettings = 1;
    tasks_ended(&server, 0, SIGKILL, 0);
    run(TOGETHER_MS);
    assert_non_null(strstr(said, "; ending the job"));
}

/* The step has the status of the first task that failed, whatever its slot; one that only left,
 * with code 0, gives way to one that failed. */
static void the_step_ends_as_the_first_lost(void **state)
{
    static const struct {
        uint32_t slot, sig, code, then_sig, then_code;
        unsigned status;
    } ends[] = {
        {0, 0, 3, 0, 5, 3},
        {1, 0, 3, 0, 5, 3},
        {1, 0, 255, SIGSEGV, 0, 255},
        {0, SIGSEGV, 0, SIGKILL, 0, 128 + SIGSEGV},
        {1, 0, 0, 0, 5, 5},
        {0, 0, 0, 0, 0, 1},
        {0, 0, BOOT_CODE_UNKNOWN, 0, 0, 1},
        {0, SIGKILL, 0, SIGKILL, 0, 128 + SIGKILL},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        tasks_ended(&server, ends[i].slot, ends[i].sig, ends[i].code);
        now += 2;
        tasks_ended(&server, 1 - ends[i].slot, ends[i].then_sig, ends[i].then_code);
        ends_after(TOGETHER_MS, 1);
        assert_int_equal(status, ends[i].status);
        again(state);
    }
}

/* PMIx_Abort has the status that exit() would have, but no other becomes 0. */
static void the_step_ends_as_it_was_aborted(void **state)
{
    static const int given[] = {0, 1, 7, 127, 128, 255, 256, 263, -1};
    static const int seen[] = {0, 1, 7, 127, 128, 255, 1, 7, 255};
    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        assert_int_equal(ending_of_abort(given[i], "").status, seen[i]);
    assert_int_equal(ending_of_abort(7, "").cause, RM_CAUSE_ABORT);
    assert_true(RM_CAUSE_ABORT < RM_CAUSE_TASK && RM_CAUSE_TASK < RM_CAUSE_HOST);
    assert_int_equal(ending_of_host("").status, 128 + SIGKILL);
}

static void abort_step(struct rm *rm, const struct rm_ending *ending)
{
    (void)rm;
    assert_int_equal(ending->cause, RM_CAUSE_HOST);
    naborts++;
}

/* The server that has the step ended may not get through: one whose tasks live does it then. */
static void tasks_that_live_are_ended_again(void **state)
{
    static const struct rm_ops ops = {.abort = abort_step};
    for (uint32_t live = 0; live < 2; live++) {
        server.rm_ops = &ops;
        server.rm = (struct rm *)&server; /* never looked into */
        naborts = 0;
        tasks_are_to_end(&server);
        server.ending = true;
        tasks_ended(&server, 0, SIGKILL, 0);
        if (live == 0)
            tasks_ended(&server, 1, SIGKILL, 0);
        run(9999);
        assert_int_equal(naborts, 0);
        run(60000);
        assert_int_equal(naborts, live);
        assert_int_equal(tasks_next(&server, now), -1);
        assert_int_equal(nends, 0);
        server.rm = NULL;
        again(state);
    }
}

/* What a task of another node has done is said by that node's server; those here that end for it
 * are no cause. */
static void the_cause_comes_first(void **state)
{
    (void)state;
    fail_for(4);
    run(20);
    tasks_ended(&server, 0, 0, 1);
    assert_true(tasks_await_cause(&server));
    ends_after(JUST_MS - 1, 0);
    server.ending = true; /* by the word of that server */
    ends_after(JUST_MS, 0);
    assert_int_equal(nerrors, 0);
    assert_int_equal(tasks[0].state, TASK_TOLD);
    assert_false(tasks_await_cause(&server));
}

/* It does not come: the step is ended all the same, and what is known of the cause is said. */
static void the_cause_does_not_come(void **state)
{
    (void)state;
    fail_for(4);
    run(20);
    tasks_ended(&server, 0, 0, 1);
    ends_after(JUST_MS - 1, 0);
    ends_after(1, 1);
    assert_int_equal(nerrors, 1);
    assert_string_equal(said, "rank 4 on c09 is lost; then rank 2 on c08 ended with exit code 1 "
                              "and without PMIx_Finalize; ending the step");
    assert_int_equal(status, 128 + SIGKILL);
}

/* A task that has ended in order is not lost, and nobody speaks for it: those that fail without it
 * give the status. */
static void the_cause_ended_in_order(void **state)
{
    (void)state;
    fail_with(PMIX_ERR_PROC_TERM_WO_SYNC, 4);
    tasks_ended(&server, 0, 0, 3);
    ends_after(JUST_MS, 1);
    assert_string_equal(said, "rank 4 on c09 has ended; then rank 2 on c08 ended with exit code 3 "
                              "and without PMIx_Finalize; ending the step");
    assert_int_equal(status, 3);
}

/* Its launcher may have cut the user off: one tells that has neither left nor is lost. */
static void who_leaves_has_another_one_tell(void **state)
{
    static const uint32_t lost[] = {4, 0}, tells[] = {0, 2};
    for (int i = 0; i < 2; i++) {
        fail_for(lost[i]);
        tasks_ended(&server, 0, 0, 1);
        run(1);
        server.told_to_leave = true;
        ends_after(JUST_MS, 1);
        assert_int_equal(through, tells[i]);
        assert_non_null(strstr(why, "is lost; then rank 2 on c08 ended"));
        again(state);
    }
}

/* Of many servers that know no cause one speaks first; of very many the last speak soon as well. */
static void servers_take_turns(void **state)
{
    static const uint32_t at[] = {0, 1, 2, 50, 51, 4000}, turns[] = {0, 1, 2, 50, 50, 50};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct boot_node many[4001];
        for (uint32_t k = 0; k < 4001; k++)
            many[k] = nodes[1];
        fail_for(4);
        server.boot.nodes = many;
        server.boot.node = at[i];
        tasks_ended(&server, 0, 0, 1);
        assert_int_equal(tasks_next(&server, now), 1000 + TURN_MS * turns[i]);
        again(state);
    }
}

/* No server waits for what is no cause: an own rank's, an old one, one in a step that goes on. */
static void what_is_no_cause(void **state)
{
    (void)state;
    fail_for(3);
    tasks_ended(&server, 0, 0, 1);
    assert_false(tasks_await_cause(&server));
    ends_after(TOGETHER_MS, 1);
    again(state);
    fail_for(4);
    run(JUST_MS);
    tasks_ended(&server, 0, 0, 1);
    assert_false(tasks_await_cause(&server));
    ends_after(TOGETHER_MS, 1);
    again(state);
    server.conf.on_task_loss = CONF_TASK_LOSS_CONTINUE;
    fail_for(4);
    tasks_ended(&server, 0, 0, 1);
    assert_false(tasks_await_cause(&server));
    ends_after(TOGETHER_MS, 0);
    assert_int_equal(nlosses, 1);
}

/* Where the step goes on: once libpmix has forgotten the task, too, or does not come to it. */
static void libpmix_learns_first(void **state)
{
    enum { LATE_MS = 1000 };
    (void)state;
    server.conf.on_task_loss = CONF_TASK_LOSS_CONTINUE;
    server.library = 7 << 16;
    tasks_ended(&server, 0, SIGKILL, 0);
    run(100);
    assert_int_equal(nlosses, 0);
    tasks[0].client = CLIENT_LEAVES;
    run(TOGETHER_MS);
    assert_int_equal(nlosses, 1);
    tasks_ended(&server, 1, SIGKILL, 0);
    run(LATE_MS - 1);
    assert_int_equal(nlosses, 1);
    run(1);
    assert_int_equal(nlosses, 2);
}

/* Of a node whose tasks were all killed another node's server tells; the RM's own end of the step
 * looks the same, and it says so itself. */
static void what_is_said_for_another_node(void **state)
{
    (void)state;
    assert_true(tasks_tell_for_others(&server));
    fail_for(4);
    run(20);
    tasks_ended(&server, 0, 0, 1);
    tasks_ended(&server, 1, 0, 1);
    assert_true(tasks_tell_for_others(&server)); /* it is what these have waited for */
    again(state);
    fail_for(4);
    run(20);
    tasks_ended(&server, 0, SIGKILL, 0);
    tasks_ended(&server, 1, SIGKILL, 0);
    assert_false(tasks_tell_for_others(&server));
    again(state);
    tasks_ended(&server, 0, SIGKILL, 0);
    assert_false(tasks_tell_for_others(&server));
    tasks_ended(&server, 1, SIGKILL, 0);
    ends_after(TOGETHER_MS, 1);
    assert_int_equal(through, 0);
    assert_string_equal(why, "all 2 tasks on c08 were killed by signal 9 (Killed) before "
                             "PMIx_Finalize; ending the step");
}

/* A task that is alone on its node is no different: who killed it may have killed all. */
static void one_that_is_alone_on_its_node(void **state)
{
    (void)state;
    nodes[1].ntasks = 1;
    tasks_ended(&server, 0, SIGKILL, 0);
    run(TOGETHER_MS);
    nodes[1].ntasks = 2;
    assert_int_equal(nends, 1);
    assert_int_equal(nerrors, 0);
    assert_int_equal(through, 0);
    assert_string_equal(why, "rank 2 on c08 was killed by signal 9 (Killed) before PMIx_Finalize; "
                             "ending the step");
}

/* What the tasks have spawned goes on after one that has ended PMIx in order, and after none that
 * was killed, even where the launcher has not told of its end. Who has not ended so is lost. */
static void which_have_ended(void **state)
{
    assert_false(tasks_one_ended_well(&server)); /* both are connected */
    tasks_ended(&server, 0, SIGKILL, 0);
    assert_false(tasks_one_ended_well(&server));
    server.tasks[1].state = TASK_FINALIZED;
    assert_true(tasks_one_ended_well(&server));
    tasks_ended(&server, 1, 0, 3);
    assert_true(tasks_one_ended_well(&server));
    again(state);
    assert_true(tasks_any_lost(&server)); /* both are connected */
    server.tasks[0].state = server.tasks[1].state = TASK_FINALIZED;
    assert_false(tasks_any_lost(&server));
    tasks_ended(&server, 0, 0, 0);
    assert_false(tasks_any_lost(&server));
    server.tasks[1].state = TASK_CONNECTED;
    tasks_ended(&server, 1, SIGKILL, 0);
    assert_true(tasks_any_lost(&server));
}

/* Where all tasks have ended by themselves, the launcher has shut the way to the terminal, so a
 * server that has not left reports the loss. If all servers are in that state, the launcher here
 * may still reach the user. */
static void none_lives_here(void **state)
{
    static const struct {
        uint32_t departed, nnodes, through;
        unsigned nerrors;
    } rows[] = {{BOOT_NO_NODE, 3, 0, 0}, {0, 3, 2, 0}, {0, 2, BOOT_NO_NODE, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        departed = rows[i].departed;
        server.boot.nnodes = rows[i].nnodes;
        tasks_ended(&server, 1, 0, 3);
        now++;
        tasks_ended(&server, 0, 0, 3);
        ends_after(TOGETHER_MS, 1);
        assert_int_equal(nerrors, rows[i].nerrors);
        assert_int_equal(through, rows[i].through);
        assert_int_equal(status, 3);
        assert_non_null(strstr(why, "rank 3 on c08 ended with exit code 3"));
        again(state);
    }
}

/* What an operation of ranks 2 to 4 fails with, for tasks here: ended, or forgotten by libpmix
 * whose launcher has not said so yet. */
static void what_operations_fail_with(void **state)
{
    struct signature fence = {.kind = COLL_FENCE}, construct = {.kind = COLL_CONSTRUCT};
    struct procset gone = {0};
    (void)state;
    procset_add(&fence.members, server.boot.nspace, 2, 4);
    procset_canonical(&fence.members);
    construct.members = fence.members;
    assert_int_equal(tasks_status(&server, &fence), 0);
    tasks[1].client = CLIENT_FORGOTTEN;
    assert_int_equal(tasks_status(&server, &fence), PMIX_ERR_PROC_TERM_WO_SYNC);
    assert_int_equal(tasks_status(&server, &construct), PMIX_ERR_PROC_TERM_WO_SYNC);
    server.library = 7 << 16;
    assert_int_equal(tasks_status(&server, &construct), PMIX_GROUP_CONSTRUCT_ABORT);
    tasks_ended(&server, 0, SIGKILL, 0);
    tasks_gone(&server, &fence, &gone);
    assert_int_equal(procset_size(&gone), 2);
    procset_free(&gone);
    procset_free(&fence.members);
    procset_add(&fence.members, server.boot.nspace, 4, 5);
    procset_canonical(&fence.members);
    assert_int_equal(tasks_status(&server, &fence), 0);
    procset_free(&fence.members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_operations_fail_with, begin, end),
        cmocka_unit_test_setup_teardown(a_loss_is_told_at_once, begin, end),
        cmocka_unit_test_setup_teardown(libpmix_learns_first, begin, end),
        cmocka_unit_test_setup_teardown(the_step_ends_as_the_first_lost, begin, end),
        cmocka_unit_test_setup_teardown(the_step_ends_as_it_was_aborted, begin, end),
        cmocka_unit_test_setup_teardown(tasks_that_live_are_ended_again, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_does_not_come, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_ended_in_order, begin, end),
        cmocka_unit_test_setup_teardown(who_leaves_has_another_one_tell, begin, end),
        cmocka_unit_test_setup_teardown(servers_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_cause, begin, end),
        cmocka_unit_test_setup_teardown(what_is_said_for_another_node, begin, end),
        cmocka_unit_test_setup_teardown(one_that_is_alone_on_its_node, begin, end),
        cmocka_unit_test_setup_teardown(which_have_ended, begin, end),
        cmocka_unit_test_setup_teardown(none_lives_here, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
