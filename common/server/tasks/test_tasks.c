/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what becomes of the step, and of operations, when tasks end.
 */
#include "common/server/ending.h"
#include "common/server/tasks/test_tasks_kit.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmix_common.h>

static void a_loss_is_told_at_once(void **state)
{
    tasks_ended(&server, 0, 0, 1);
    assert_false(tasks_await_cause(&server));
    ends_after(TOGETHER_MS - 1, 0);
    ends_after(1, 1);
    assert_int_equal(nerrors, 1);
    assert_string_equal(said, "rank 2 on c08 ended with exit code 1 and without PMIx_Finalize; "
                              "ending the step");
    again(state);
    /* the word of the resource manager's users */
    log_set_unit("job");
    tasks_ended(&server, 0, SIGKILL, 0);
    run(TOGETHER_MS);
    assert_non_null(strstr(said, "; ending the job"));
    log_set_unit("step");
}

/* The step has the status of the first task that failed, whatever its slot; one that only left,
 * with code 0, gives way to one that failed. */
static void the_step_ends_as_the_first_lost(void **state)
{
    static const struct {
        uint32_t slot, sig, code, then_sig, then_code;
        unsigned status, ms; /* between both */
    } ends[] = {
        {0, 0, 3, 0, 5, 3, 2},
        {1, 0, 3, 0, 5, 3, 2},
        {1, 0, 255, SIGSEGV, 0, 255, 2},
        {0, SIGSEGV, 0, SIGKILL, 0, 128 + SIGSEGV, 2},
        {1, 0, 0, 0, 5, 5, 2},
        {0, 0, 0, 0, 0, 1, 2},
        {0, 0, BOOT_CODE_UNKNOWN, 0, 0, 1, 2},
        {0, SIGKILL, 0, SIGKILL, 0, 128 + SIGKILL, 2},
        {0, 0, 1, SIGSEGV, 0, 128 + SIGSEGV, 0},
        {1, SIGSEGV, 0, 0, 1, 128 + SIGSEGV, 0},
        {0, 0, 3, SIGKILL, 0, 3, 0},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        tasks_ended(&server, ends[i].slot, ends[i].sig, ends[i].code);
        now += ends[i].ms;
        tasks_ended(&server, 1 - ends[i].slot, ends[i].then_sig, ends[i].then_code);
        ends_after(TOGETHER_MS, 1);
        assert_int_equal(status, ends[i].status);
        again(state);
    }
}

/* What the RM may have killed has the way to the user that the RM shuts when it ends the step. */
static void signals_of_the_rm(void **state)
{
    static const struct {
        uint32_t sig;
        bool told;
    } ends[] = {{SIGKILL, true}, {SIGTERM, true}, {SIGSEGV, false}, {0, false}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        tasks_ended(&server, 0, ends[i].sig, 1);
        ends_after(TOGETHER_MS, 1);
        assert_int_equal(told, ends[i].told);
        again(state);
        tasks_ended(&server, 0, ends[i].sig, 1);
        tasks_ended(&server, 1, ends[i].sig, 1);
        ends_after(60000, 1);
        assert_int_equal(told, ends[i].told);
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

/* The RM may not be reached, or not know the step any more: tasks that live on are killed, and
 * those that have ended, whose numbers may be others' by now, are not. */
static void tasks_that_live_on_are_killed(void **state)
{
    pid_t pid = fork();
    int end;
    (void)state;
    if (pid == 0) {
        pause();
        _exit(0);
    }
    tasks[0].pid = getpid();
    tasks_ended(&server, 0, SIGKILL, 0);
    tasks[1].pid = pid;
    server.ending = true;
    timer_after(&server.kill_rest, SERVER_KILL_MS);
    run(SERVER_KILL_MS - 1);
    assert_int_equal(waitpid(pid, &end, WNOHANG), 0);
    run(1);
    assert_int_equal(waitpid(pid, &end, 0), pid);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    tasks_ended(&server, 1, SIGKILL, 0);
    run(SERVER_KILL_MS);
    assert_int_equal(timers_wait(&server.timers), -1);
}

static rm_ending_fn *to_rm;
static unsigned nasked;

static void ask_whose(struct rm *rm, rm_ending_fn *done, void *arg)
{
    assert_non_null(rm);
    assert_ptr_equal(arg, &server);
    to_rm = done;
    nasked++;
}

/* Both tasks are lost, and the RM has been asked whose doing that is. */
static void lose_both_and_ask(void)
{
    static const struct rm_ops ops = {.is_ending = ask_whose};
    server.rm_ops = &ops;
    server.rm = (struct rm *)&server; /* never looked into */
    nasked = 0;
    tasks_ended(&server, 0, SIGTERM, 0);
    run(TOGETHER_MS);
    assert_true(tasks_await_rm(&server));
    tasks_ended(&server, 1, SIGTERM, 0); /* which makes nobody hurry */
    run(500);
    tasks_hurry(&server); /* nor does the end of the server */
    assert_int_equal(nasked, 1);
    assert_int_equal(nerrors + nends, 0);
}

/* The RM notes that it ends the step before it kills a task: a user who has cancelled the step does
 * not read that its tasks have failed. */
static void tasks_that_the_rm_kills_are_not_blamed(void **state)
{
    lose_both_and_ask();
    to_rm(&server, true);
    assert_false(tasks_await_rm(&server));
    assert_int_equal(nerrors, 0);
    assert_int_equal(nends, 1); /* so that the other servers know */
    assert_int_equal(through, ENDING_RM_TELLS);
    ends_after(60000, 1);
    assert_int_equal(nerrors + nlosses, 0);
    again(state);
    lose_both_and_ask();
    to_rm(&server, false);
    assert_int_equal(nends, 1);
    assert_int_equal(through, 0);
    assert_non_null(strstr(why, "all 2 tasks on c08 were killed by signal 15"));
    again(state);
    lose_both_and_ask(); /* and no answer comes */
    ends_after(499, 0);
    ends_after(1, 1);
    assert_non_null(strstr(why, "all 2 tasks on c08 were killed by signal 15"));
    to_rm(&server, true);
    assert_int_equal(nends, 1);
    again(state);
    server.conf.on_task_loss = CONF_TASK_LOSS_CONTINUE;
    lose_both_and_ask();
    to_rm(&server, true);
    assert_int_equal(nlosses + nerrors, 0);
    again(state);
    lose_both_and_ask(); /* the server ends, and does not wait any longer */
    tasks_tell_rest(&server);
    assert_int_equal(nends, 1);
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

/* What the tasks have spawned goes on when a task has ended PMIx in order, but not when it was
 * killed, even where the launcher has not told of its end. */
static void which_have_ended(void **state)
{
    (void)state;
    assert_false(tasks_one_ended_well(&server)); /* both are connected */
    tasks_ended(&server, 0, SIGKILL, 0);
    assert_false(tasks_one_ended_well(&server));
    server.tasks[1].state = TASK_FINALIZED;
    assert_true(tasks_one_ended_well(&server));
    tasks_ended(&server, 1, 0, 3);
    assert_true(tasks_one_ended_well(&server));
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
        cmocka_unit_test_setup_teardown(signals_of_the_rm, begin, end),
        cmocka_unit_test_setup_teardown(the_step_ends_as_it_was_aborted, begin, end),
        cmocka_unit_test_setup_teardown(tasks_that_live_on_are_killed, begin, end),
        cmocka_unit_test_setup_teardown(which_have_ended, begin, end),
        cmocka_unit_test_setup_teardown(tasks_that_the_rm_kills_are_not_blamed, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
