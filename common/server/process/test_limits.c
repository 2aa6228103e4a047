/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how many descriptors a server counts for its tasks, on a limit of the test's own.
 */
#include "common/server/process/limits.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/resource.h>

enum { TASKS = 32, REST = 64 /* of a server without tasks */, ARITY = 16 };

static rlim_t limit;

/* Instead of libc's. */
int getrlimit(__rlimit_resource_t resource, struct rlimit *files)
{
    assert_int_equal(resource, RLIMIT_NOFILE);
    *files = (struct rlimit){.rlim_cur = limit, .rlim_max = limit};
    return 0;
}

static void tasks_have_one_each(void **state)
{
    struct err err = {0};
    (void)state;
    limit = REST + TASKS;
    assert_int_equal(limits_descriptors(TASKS, false, &err), 0);
    limit--;
    assert_int_equal(limits_descriptors(TASKS, false, &err), -1);
    assert_non_null(strstr(err.text, "it may open 95 files, and needs 96 for 32 tasks"));
}

/* A connection, another one until exec, and both ends of two streams. */
static void spawned_ones_have_six(void **state)
{
    struct err err = {0};
    (void)state;
    limit = REST + 6 * TASKS;
    assert_int_equal(limits_descriptors(TASKS, true, &err), 0);
    limit--;
    assert_int_equal(limits_descriptors(TASKS, true, &err), -1);
    assert_non_null(strstr(err.text, "it may open 255 files, and needs 256 for 32 tasks"));
}

static void a_step_has_to_fit(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(limits_step(1, 10000, 640000, &err), 0);
    assert_int_equal(limits_step(UINT64_MAX, 10000, 640000, &err), -1);
    assert_non_null(strstr(err.text, " of 640000 tasks on 10000 nodes takes up to "));
    assert_non_null(strstr(err.text, " MiB are left: start fewer tasks"));
}

/* Half of what the tasks leave is for connections to other servers. */
static void connections_take_what_tasks_leave(void **state)
{
    (void)state;
    limit = REST + 6 * TASKS + 40;
    assert_int_equal(limits_connections(ARITY, TASKS, true), 20);
    assert_int_equal(limits_connections(ARITY, TASKS, false), 4 * ARITY);
    limit = REST + 6 * TASKS;
    assert_int_equal(limits_connections(ARITY, TASKS, true), 4);
    assert_int_equal(limits_held(TASKS, true), 0);
    limit += 40;
    assert_int_equal(limits_held(TASKS, true), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_have_one_each),
        cmocka_unit_test(spawned_ones_have_six),
        cmocka_unit_test(a_step_has_to_fit),
        cmocka_unit_test(connections_take_what_tasks_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
