/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of connections that close while the task's own process goes on.
 */
#include "common/server/tasks/cut.h"
#include "common/server/tasks/test_tasks_kit.h"
#include "common/util/test_cmocka.h"

#include <string.h>

/* @return whether task @p slot, and no other one, counts as lost after that time */
static bool lost_after(int64_t ms, uint32_t slot)
{
    ngone = 0;
    now += ms;
    timers_run(&server.timers);
    assert_true(ngone == 0 || (ngone == 1 && gone_slot == slot));
    return ngone == 1;
}

static void cut(uint32_t slot)
{
    tasks[slot].state = TASK_CONNECTED;
    cut_own(&server, slot);
    assert_int_equal(tasks[slot].state, TASK_CUT);
}

/* The shell that has started the program goes on. */
static void a_task_that_does_not_come_back(void **state)
{
    (void)state;
    assert_int_equal(timers_wait(&server.timers), -1);
    cut(1);
    assert_int_equal(timers_wait(&server.timers), CUT_MS);
    assert_false(lost_after(CUT_MS - 1, 1));
    cut(0);
    assert_true(lost_after(1, 1));
    task_move(&tasks[1], 3, TASK_END);
    assert_int_equal(timers_wait(&server.timers), CUT_MS - 1);
    assert_true(lost_after(CUT_MS - 1, 0));
}

static void a_task_that_comes_back_or_ends(void **state)
{
    (void)state;
    cut(0);
    task_move(&tasks[0], 2, TASK_INIT);
    cut(1);
    task_move(&tasks[1], 3, TASK_END);
    assert_false(lost_after(CUT_MS, 0));
    assert_int_equal(timers_wait(&server.timers), -1);
}

static void a_step_that_ends(void **state)
{
    (void)state;
    cut(0);
    cut_beside(&server, 0);
    server.ending = true;
    assert_false(lost_after(CUT_MS, 0));
    assert_int_equal(nerrors, 0);
}

static void none_waits_for_the_only_task(void **state)
{
    (void)state;
    server.boot.ntasks = 1;
    cut(0);
    assert_int_equal(timers_wait(&server.timers), -1);
}

static void a_program_beside_is_told_of_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        cut_beside(&server, 1);
        assert_false(lost_after(CUT_BESIDE_MS - 1, 1));
        assert_int_equal(nerrors, i > 0);
        assert_false(lost_after(1, 1));
        assert_int_equal(nerrors, 1);
    }
    assert_non_null(strstr(said, "rank 3 on c08"));
    assert_non_null(strstr(said, "env -u PMIX_NAMESPACE"));
}

/* It ends with its task: that is what the user is told of. */
static void a_program_that_ends_with_its_task(void **state)
{
    (void)state;
    cut_beside(&server, 1);
    tasks[1].state = TASK_LOST;
    assert_false(lost_after(CUT_BESIDE_MS, 1));
    assert_int_equal(nerrors, 0);
    assert_int_equal(timers_wait(&server.timers), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_task_that_does_not_come_back, begin, end),
        cmocka_unit_test_setup_teardown(a_task_that_comes_back_or_ends, begin, end),
        cmocka_unit_test_setup_teardown(a_step_that_ends, begin, end),
        cmocka_unit_test_setup_teardown(none_waits_for_the_only_task, begin, end),
        cmocka_unit_test_setup_teardown(a_program_beside_is_told_of_once, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_ends_with_its_task, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
