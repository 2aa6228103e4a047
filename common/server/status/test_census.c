/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the census: what a server sees of its tasks, what another server reads of that, and that
 * bytes which make no sense are refused.
 */
#include "common/server/status/census.h"

#include "common/util/test_cmocka.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <pmix_common.h>

enum { NTASKS = 7 };

static uint32_t ranks[NTASKS] = {10, 11, 12, 13, 14, 15, 16};
static struct boot_node nodes[] = {{"c07", NTASKS, ranks, 0}};
static struct task tasks[NTASKS];
static struct server server;

static int set_up(void **state)
{
    (void)state;
    memset(tasks, 0, sizeof tasks);
    server = (struct server){.tasks = tasks};
    server.boot = (struct boot){.nnodes = 1, .ntasks = NTASKS, .nodes = nodes};
    return 0;
}

/* A task in each state, as the standard names them; this process is the one that runs. */
static void tasks_in_each_state(void **state)
{
    struct census census;
    (void)state;
    tasks[1] = (struct task){.state = TASK_CONNECTED, .pid = getpid()};
    tasks[2] = (struct task){.state = TASK_FINALIZED, .pid = getpid()};
    tasks[3] = (struct task){.state = TASK_ENDED, .pid = getpid()};
    tasks[4] = (struct task){.state = TASK_ENDED, .code = 3};
    tasks[5] = (struct task){.state = TASK_LOST, .sig = SIGSEGV};
    tasks[6] = (struct task){.state = TASK_TOLD, .code = BOOT_CODE_UNKNOWN};
    const struct {
        uint8_t state;
        int32_t code;
    } want[NTASKS] = {{PMIX_PROC_STATE_LAUNCH_UNDERWAY, 0}, {PMIX_PROC_STATE_CONNECTED, 0},
                      {PMIX_PROC_STATE_RUNNING, 0},         {PMIX_PROC_STATE_TERMINATED, 0},
                      {PMIX_PROC_STATE_TERM_NON_ZERO, 3},   {PMIX_PROC_STATE_ABORTED_BY_SIG, 139},
                      {PMIX_PROC_STATE_TERM_WO_SYNC, -1}};
    census_take(&server, CENSUS_ALL, &census);
    assert_int_equal(census.ntasks, NTASKS);
    for (uint32_t k = 0; k < NTASKS; k++) {
        assert_int_equal(census.tasks[k].rank, ranks[k]);
        assert_int_equal(census.tasks[k].state, want[k].state);
        assert_int_equal(census.tasks[k].code, want[k].code);
    }
    assert_non_null(strstr(census.tasks[1].program, "test_census"));
    assert_string_equal(census.tasks[3].program, ""); /* its number may be another's */
    assert_non_null(strstr(census.command, "test_census"));
    assert_int_equal(census.counted, 2);
    assert_true(census.server_kib > 0 && census.tasks_kib >= census.server_kib);
    census_free(&census);
}

/* A launcher that knows the command line is believed. */
static void a_known_command_line(void **state)
{
    struct census census;
    char key[] = "argv", value[] = "ocean --deep";
    struct boot_setting setting = {key, value};
    (void)state;
    server.boot.nsettings = 1;
    server.boot.settings = &setting;
    census_take(&server, CENSUS_COMMAND, &census);
    assert_string_equal(census.command, "ocean --deep");
    assert_int_equal(census.ntasks, 0); /* was not asked for */
    census_free(&census);
}

/* For each set of parts: the same comes out, and fewer or more bytes are refused. */
static void written_and_read(void **state)
{
    (void)state;
    tasks[1] = (struct task){.state = TASK_CONNECTED, .pid = getpid()};
    for (unsigned parts = 0; parts <= CENSUS_ALL; parts++) {
        struct wire_out a = {0}, b = {0};
        struct wire_in in;
        struct census census, read;
        census_take(&server, parts, &census);
        census_write(&census, parts, &a);
        wire_in_init(&in, a.data, a.len);
        assert_int_equal(census_read(&read, parts, &in), 0);
        census_write(&read, parts, &b);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.len > 0 ? (void *)a.data : "", b.len > 0 ? (void *)b.data : "",
                            a.len);
        census_free(&read);
        for (size_t len = 0; len < a.len; len++) {
            wire_in_init(&in, a.data, len);
            assert_int_equal(census_read(&read, parts, &in), -1);
            census_free(&read);
        }
        wire_put_u8(&a, 0);
        wire_in_init(&in, a.data, a.len);
        assert_int_equal(census_read(&read, parts, &in), -1);
        census_free(&read);
        census_free(&census);
        wire_out_free(&a);
        wire_out_free(&b);
    }
}

/* A count that cannot be true takes no memory. */
static void a_count_of_nothing(void **state)
{
    struct wire_out out = {0};
    struct wire_in in;
    struct census read;
    (void)state;
    wire_put_u32(&out, UINT32_MAX);
    wire_in_init(&in, out.data, out.len);
    assert_int_equal(census_read(&read, CENSUS_TASKS, &in), -1);
    assert_int_equal(read.ntasks, 0);
    census_free(&read);
    wire_out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tasks_in_each_state, set_up),
        cmocka_unit_test_setup(a_known_command_line, set_up),
        cmocka_unit_test_setup(written_and_read, set_up),
        cmocka_unit_test_setup(a_count_of_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
