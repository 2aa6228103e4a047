/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how srun is asked for a spawned step, and of the order that says what it is.
 */
#include "plugins/slurm/spawn_srun.h"

#include "common/launch/spawn_wire.h"
#include "common/util/test_cmocka.h"

#include <string.h>

static struct rm_spawn what(void)
{
    static char *plan[] = {(char *)"1", (char *)"2", (char *)"prog"};
    return (struct rm_spawn){.parent = "slurm.4711.0",
                             .rank = 5,
                             .ntasks = 2,
                             .apps = "2",
                             .plan = plan,
                             .nplan = sizeof plan / sizeof *plan,
                             .input = RM_INPUT_NONE,
                             .timeout = 60};
}

/* Cut anywhere it is none, and costs nothing. */
static void a_cut_order_is_refused(void **state)
{
    struct rm_spawn wants = what();
    struct wire_out out = {0};
    (void)state;
    wants.hosts = "a,b";
    wants.output = "out";
    wants.psets = "sea=0-1";
    wants.merge = true;
    spawn_put(&out, &wants, true);
    for (size_t len = 0; len <= out.len; len++) {
        struct spawn_order order = {0};
        struct wire_in in;
        wire_in_init(&in, out.data, len);
        assert_int_equal(spawn_get(&in, &order), len == out.len);
        if (len == out.len) {
            assert_string_equal(order.what.hosts, "a,b");
            assert_string_equal(order.what.output, "out");
            assert_string_equal(order.what.psets, "sea=0-1");
            assert_true(order.what.merge && !order.what.tag && order.free_cpus);
            assert_int_equal(order.what.nplan, wants.nplan);
        }
        spawn_order_free(&order);
    }
    wire_out_free(&out);
}

static const char *find(char **list, const char *start)
{
    for (; *list != NULL; list++)
        if (strncmp(*list, start, strlen(start)) == 0)
            return *list;
    return NULL;
}

static void how_srun_is_asked(void **state)
{
    char *variables[] = {(char *)"PATH=/bin",         (char *)"SLURM_CONF=/c",
                         (char *)"SLURM_NTASKS=4",    (char *)"SLURM_CONFUSED=1",
                         (char *)"MUSTER_AGENT=1",    (char *)"MUSTER_EXEC_0=old",
                         (char *)"MUSTER_PARENT=old", (char *)"MUSTER_ON_TASK_LOSS=continue",
                         (char *)"PMIX_RANK=1",       NULL};
    const struct spawn_place place = {.program = "srun", .job = 9, .env = variables};
    struct spawn_order order = {.what = what()};
    (void)state;
    order.what.hosts = "b,a,b";
    order.what.tag = true;
    order.what.output = "f";
    char **argv = spawn_argv(&place, &order, SPAWN_FREE_CPUS);
    char **env = spawn_env(&place, &order);
    assert_string_equal(find(argv, "--jobid"), "--jobid=9");
    assert_null(find(argv, "--nodes")); /* 26.05 refuses it beside a list of nodes */
    assert_string_equal(find(argv, "--nodelist"), "--nodelist=b,a,b");
    assert_non_null(find(argv, "--distribution=arbitrary"));
    assert_non_null(find(argv, "--exact"));
    assert_null(find(argv, "--overlap"));
    assert_null(find(argv, "--overcommit"));
    assert_non_null(find(argv, "--label"));
    assert_string_equal(find(argv, "--error"), "--error=f.%t.err");
    assert_string_equal(find(env, "SLURM_CONF"), "SLURM_CONF=/c");
    assert_null(find(env, "SLURM_NTASKS"));
    assert_null(find(env, "SLURM_CONFUSED"));
    assert_null(find(env, "MUSTER_AGENT"));
    assert_null(find(env, "PMIX_RANK"));
    assert_string_equal(find(env, "MUSTER_EXEC_0"), "MUSTER_EXEC_0=1");
    assert_string_equal(find(env, "MUSTER_PARENT"), "MUSTER_PARENT=5 slurm.4711.0");
    assert_non_null(find(env, "MUSTER_ON_TASK_LOSS=continue"));
    spawn_list_free(argv);
    spawn_list_free(env);
    order.what.hosts = NULL;
    order.what.per_node = 2;
    order.what.ntasks = 5;
    argv = spawn_argv(&place, &order, SPAWN_SHARED_CPUS);
    assert_string_equal(find(argv, "--nodes"), "--nodes=3");
    assert_non_null(find(argv, "--overlap"));
    spawn_list_free(argv);
}

/* Of a heterogeneous allocation srun is told the component. */
static void a_component_is_named(void **state)
{
    char *variables[] = {(char *)"SLURM_HET_SIZE=2", (char *)"SLURM_JOB_ID_HET_GROUP_0=8",
                         (char *)"SLURM_JOB_ID_HET_GROUP_1=9", NULL};
    const struct spawn_place place = {.program = "srun", .job = 9, .env = variables};
    struct spawn_order order = {.what = what()};
    (void)state;
    char **argv = spawn_argv(&place, &order, SPAWN_SHARED_CPUS);
    assert_string_equal(find(argv, "--jobid"), "--jobid=8");
    assert_string_equal(find(argv, "--het-group"), "--het-group=1");
    spawn_list_free(argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_order_is_refused),
        cmocka_unit_test(how_srun_is_asked),
        cmocka_unit_test(a_component_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
