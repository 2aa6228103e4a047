/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which server tells the user of lost tasks, and when: at once, or after the cause that
 * another node's server is to tell.
 */
#include "common/server/tasks/cut.h"
#include "common/server/tasks/test_tasks_kit.h"

#include "common/util/test_cmocka.h"

#include <signal.h>
#include <string.h>

#include <pmix_common.h>

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
        assert_int_equal(timers_wait(&server.timers), 1000 + TURN_MS * turns[i]);
        again(state);
    }
}

/* The connection of a task that crashes closes before the launcher sees its process end; a task
 * whose operation fails for that may end before. */
static void the_cause_is_seen_late(void **state)
{
    (void)state;
    cut_own(&server, 1);
    run(1);
    tasks_ended(&server, 0, 0, 1);
    ends_after(4 * TOGETHER_MS, 0);
    tasks_ended(&server, 1, SIGSEGV, 0);
    ends_after(TOGETHER_MS, 1);
    assert_non_null(strstr(why, "rank 3 on c08 was killed by signal 11"));
    assert_int_equal(status, 128 + SIGSEGV);
    again(state); /* its process goes on */
    cut_own(&server, 1);
    tasks_ended(&server, 0, 0, 1);
    ends_after(JUST_MS - TURN_MS - 1, 0);
    ends_after(TOGETHER_MS, 1);
    assert_non_null(strstr(why, "rank 2 on c08 ended with exit code 1"));
    again(state); /* it is no cause */
    tasks_ended(&server, 0, 0, 1);
    run(1);
    cut_own(&server, 1);
    ends_after(TOGETHER_MS, 1);
    assert_non_null(strstr(why, "rank 2 on c08 ended with exit code 1"));
}

/* The RM shuts the terminal of a step whose only task has ended. */
static void an_only_task(void **state)
{
    static uint32_t rank[] = {0};
    struct boot_node only[] = {{"c08", 1, rank, 0}};
    (void)state;
    server.boot.nodes = only;
    server.boot.node = 0;
    server.boot.nnodes = server.boot.ntasks = 1;
    tasks_ended(&server, 0, SIGSEGV, 0);
    ends_after(0, 1);
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

/* Where all tasks have ended by themselves, the launcher has shut the way to the terminal, so a
 * server that has not left reports the loss. If all servers are in that state, the launcher here
 * may still reach the user. */
static void none_lives_here(void **state)
{
    static const struct {
        uint32_t departed, nnodes, through;
        unsigned nerrors;
    } rows[] = {{BOOT_NO_NODE, 3, 0, 0}, {0, 3, 2, 0}, {0, 2, 1, 1}};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_cause_comes_first, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_does_not_come, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_ended_in_order, begin, end),
        cmocka_unit_test_setup_teardown(the_cause_is_seen_late, begin, end),
        cmocka_unit_test_setup_teardown(an_only_task, begin, end),
        cmocka_unit_test_setup_teardown(who_leaves_has_another_one_tell, begin, end),
        cmocka_unit_test_setup_teardown(servers_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_cause, begin, end),
        cmocka_unit_test_setup_teardown(what_is_said_for_another_node, begin, end),
        cmocka_unit_test_setup_teardown(one_that_is_alone_on_its_node, begin, end),
        cmocka_unit_test_setup_teardown(none_lives_here, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
