/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is taken for the cgroup of a step.
 */
#include "plugins/slurm/cgroup.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static void steps(void **state)
{
    static const char *const paths[][2] = {
        {"/system.slice/slurmstepd.scope/job_7/step_0/slurm", "/system.slice/slurmstepd.scope"},
        {"/a/job_7/step_batch/slurm", "/a"},
        {"/job_7/step_0/slurm", ""},
        {"/slurm/step_0/slurm/job_7/step_1/slurm", "/slurm/step_0/slurm"},
    };
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        snprintf(path, sizeof(path), "%s", paths[i][0]);
        assert_true(cgroup_scope(path));
        assert_string_equal(path, paths[i][1]);
    }
}

static void others(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "slurm",
        "/slurm",
        "/step_0/slurm",
        "step_0/slurm",
        "//step_0/slurm",
        "/a/job_7/step_0",
        "/a/job_7/step_0/slurm/",
        "/a/job_7/step_0/user/task_0",
        "/a/job_7/xstep_0/slurm",
        "/a/job_7/step_0/slurmx",
        "/system.slice/slurmd.service",
    };
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        snprintf(path, sizeof(path), "%s", paths[i]);
        if (cgroup_scope(path))
            fail_msg("%s is taken for a step's", paths[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
