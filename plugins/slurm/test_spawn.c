/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of spawned steps in the agent. This program plays srun, too, when it is started by that
 * name: the variable PLAY says how.
 */
#include "plugins/slurm/agent_children.h"

#include "common/util/clock.h"
#include "common/util/io_all.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/spawn_srun.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 30000, CALLER = 7, JOB = 4711, STEP = 3 };

/* ---- srun ---- */

static void say_launched(void)
{
    struct wire_out out = {0};
    size_t begin = agent_frame_begin(&out, AGENT_LAUNCHED);
    wire_put_u32(&out, JOB);
    wire_put_u32(&out, STEP);
    agent_frame_end(&out, begin);
    send_all(SPAWN_FD_CHANNEL, out.data, out.len);
    wire_out_free(&out);
}

static void say_started(enum rm_spawn_result result)
{
    struct wire_out out = {0};
    const struct rm_spawn_news news = {
        .result = result, .text = "so it is", .registration = "abc", .len = 3};
    size_t begin = agent_frame_begin(&out, AGENT_STARTED);
    spawn_put_news(&out, &news);
    agent_frame_end(&out, begin);
    send_all(SPAWN_FD_CHANNEL, out.data, out.len);
    wire_out_free(&out);
}

static bool has(char **argv, const char *option)
{
    for (; *argv != NULL; argv++)
        if (strcmp(*argv, option) == 0)
            return true;
    return false;
}

static int play(char **argv)
{
    const char *how = getenv("PLAY");
    char byte;
    if (strcmp(how, "lacks") == 0 || (strcmp(how, "busy") == 0 && has(argv, "--exact"))) {
        fprintf(stderr, "srun: error: Unable to create step for job 1: More processors requested "
                        "than permitted\nand more\n");
        return 1;
    }
    if (strcmp(how, "silent") != 0)
        say_launched();
    if (strcmp(how, "cannot") == 0 || (strncmp(how, "free", 4) == 0 && has(argv, "--exact")) ||
        (strcmp(how, "free:99") == 0 && !has(argv, "--nodelist=node7,node8"))) {
        say_started(RM_SPAWN_NO_PROGRAM);
        return 127;
    }
    if (strcmp(how, "silent") != 0)
        say_started(RM_SPAWN_RUNS);
    if (strcmp(how, "seven") == 0)
        return 7;
    if (strcmp(how, "deaf") == 0)
        signal(SIGTERM, SIG_IGN);
    while (recv(SPAWN_FD_CHANNEL, &byte, 1, 0) > 0)
        ;
    return 99;
}

/* ---- the agent ---- */

static struct children *children;
static unsigned nstarted, nended, nkilled;
static enum rm_spawn_result result;
static uint32_t status;
static char said[SPAWN_TEXT_MAX];
static char variable[64];
static bool shared; /* the running step was said to share its processors */
static unsigned nfds;

static void on_tell(void *arg, uint64_t caller, const struct wire_out *out)
{
    struct agent_frame frame;
    struct rm_spawn_news news = {0};
    char text[SPAWN_TEXT_MAX];
    (void)arg;
    assert_int_equal(caller, CALLER);
    assert_int_equal(agent_frame_read(out->data, out->len, AGENT_FRAME_MAX, &frame), 1);
    assert_true(spawn_get_news(&frame.body, &news, text));
    if (frame.type == AGENT_STARTED) {
        nstarted++;
        result = news.result;
        strcpy(said, text);
    } else {
        assert_int_equal(frame.type, AGENT_ENDED);
        assert_int_equal(news.result, RM_SPAWN_ENDED);
        nended++;
        status = news.status;
    }
}

static void on_kill(void *arg, uint32_t job, uint32_t step)
{
    (void)arg;
    assert_int_equal(job, JOB);
    assert_int_equal(step, STEP);
    nkilled++;
}

/* PLAY=free:N has N processors that no step has. */
static int64_t on_free_cpus(void *arg, uint32_t job, job_cpus_shares_fn *shares, void *shares_arg)
{
    const char *n = strchr(variable, ':');
    (void)arg;
    assert_int_equal(job, JOB);
    assert_false(shares(shares_arg, JOB, STEP + 1));
    shared = shares(shares_arg, JOB, STEP);
    return n != NULL ? atoi(n + 1) : -1;
}

static char *on_idle_nodes(void *arg, uint32_t job, uint32_t cpus, uint32_t *n)
{
    (void)arg;
    assert_int_equal(job, JOB);
    assert_int_equal(cpus, 2);
    *n = 2;
    return strdup("node7,node8");
}

static unsigned count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    (void)level;
    (void)text;
}

static void begin(const char *how)
{
    static char self[4096];
    char *env[] = {variable, NULL};
    snprintf(variable, sizeof variable, "PLAY=%s", how);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    const struct children_env wants = {.program = self,
                                       .job = JOB,
                                       .tell = on_tell,
                                       .kill = on_kill,
                                       .free_cpus = on_free_cpus,
                                       .idle_nodes = on_idle_nodes};
    log_open(sink, NULL, LOG_LEVEL_ERROR, NULL);
    nstarted = nended = nkilled = 0;
    said[0] = '\0';
    nfds = count_fds();
    children = children_new(&wants, env);
    assert_non_null(children);
}

static void end(void)
{
    assert_int_equal(children_count(children), 0);
    children_free(children);
    assert_int_equal(count_fds(), nfds);
}

static struct rm_spawn what(void)
{
    static char *plan[] = {(char *)"1",    (char *)"2",    (char *)"", (char *)"1",
                           (char *)"prog", (char *)"prog", (char *)"0"};
    return (struct rm_spawn){.parent = "slurm.4711.0",
                             .rank = 5,
                             .ntasks = 2,
                             .apps = "2",
                             .plan = plan,
                             .nplan = sizeof plan / sizeof *plan,
                             .input = RM_INPUT_NONE,
                             .timeout = 60};
}

static void start_one(const struct rm_spawn *wants, bool free_cpus)
{
    struct wire_out out = {0};
    struct wire_in in;
    spawn_put(&out, wants, free_cpus);
    wire_in_init(&in, out.data, out.len);
    children_start(children, CALLER, &in);
    wire_out_free(&out);
}

/* Runs the agent's loop until that is so. */
static bool until(unsigned *counter, unsigned value)
{
    int64_t by = now_ms() + WAIT_MS;
    while (*counter != value && now_ms() < by) {
        struct pollfd fds[CHILDREN_FDS];
        unsigned n = children_poll(children, fds);
        poll(fds, n, 10);
        children_ready(children, fds, n);
    }
    return *counter == value;
}

static bool all_end(void)
{
    int64_t by = now_ms() + WAIT_MS;
    while (children_count(children) > 0 && now_ms() < by) {
        struct pollfd fds[CHILDREN_FDS];
        unsigned n = children_poll(children, fds);
        poll(fds, n, 10);
        children_ready(children, fds, n);
    }
    return children_count(children) == 0;
}

/* ---- tests ---- */

static void it_runs_and_ends(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("seven");
    start_one(&wants, false);
    assert_true(until(&nended, 1));
    assert_int_equal(nstarted, 1);
    assert_int_equal(status, 7);
    end();
}

static void without_free_processors_it_takes_shared_ones(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("busy");
    start_one(&wants, true);
    assert_true(until(&nstarted, 1));
    assert_int_equal(result, RM_SPAWN_RUNS);
    children_caller_gone(children, CALLER);
    assert_true(all_end());
    end();
}

/* srun is asked once, for free processors if there are enough. */
static void free_processors_are_counted_first(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    for (unsigned free = wants.ntasks - 1; free <= wants.ntasks; free++) {
        char how[16];
        snprintf(how, sizeof how, "free:%u", free);
        begin(how);
        start_one(&wants, true);
        assert_true(until(&nstarted, 1));
        assert_int_equal(result, free < wants.ntasks ? RM_SPAWN_RUNS : RM_SPAWN_NO_PROGRAM);
        start_one(&wants, true);
        assert_int_equal(shared, free < wants.ntasks);
        assert_true(until(&nstarted, 2));
        children_caller_gone(children, CALLER);
        assert_true(all_end());
        end();
    }
}

static void a_job_that_has_grown_shares_processors(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("free:99");
    children_have_grown(children);
    start_one(&wants, true);
    assert_true(until(&nstarted, 1));
    assert_int_equal(result, RM_SPAWN_RUNS);
    children_caller_gone(children, CALLER);
    assert_true(all_end());
    end();
}

/* While nodes are given back; srun is not started for those that end before that. */
static void steps_are_held(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("seven");
    assert_true(children_hold(children, true));
    start_one(&wants, false);
    children_caller_gone(children, CALLER);
    assert_int_equal(children_count(children), 0);
    start_one(&wants, false);
    children_tick(children, now_ms() + 1000 * (int64_t)wants.timeout + 1);
    assert_int_equal(children_count(children), 0);
    assert_int_equal(nstarted, 1);
    assert_int_equal(result, RM_SPAWN_TIMEOUT);
    start_one(&wants, false);
    assert_int_equal(nstarted, 1);
    children_hold(children, false);
    assert_true(until(&nended, 1));
    assert_int_equal(nstarted, 2);
    assert_int_equal(result, RM_SPAWN_RUNS);
    end();
}

static void a_job_that_lacks_processors(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("lacks");
    start_one(&wants, true);
    assert_true(until(&nstarted, 1));
    assert_int_equal(result, RM_SPAWN_NO_RESOURCES);
    assert_non_null(strstr(said, "More processors"));
    assert_null(strstr(said, "and more"));
    assert_int_equal(nended, 0);
    end();
}

static void a_program_that_cannot_be_started(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("cannot");
    start_one(&wants, false);
    assert_true(until(&nstarted, 1));
    assert_int_equal(result, RM_SPAWN_NO_PROGRAM);
    assert_string_equal(said, "so it is");
    assert_true(until(&nended, 1));
    assert_int_equal(nstarted, 1);
    end();
}

static void it_ends_with_its_caller(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("runs");
    start_one(&wants, false);
    assert_true(until(&nstarted, 1));
    assert_true(children_has(children, CALLER));
    children_caller_gone(children, CALLER);
    assert_true(all_end());
    assert_int_equal(nended, 0);
    end();
}

static void let_go_it_goes_on_until_its_time_is_over(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("runs");
    wants.linger = 100;
    start_one(&wants, false);
    assert_true(until(&nstarted, 1));
    children_let_go(children, CALLER);
    assert_false(children_has(children, CALLER));
    children_caller_gone(children, CALLER);
    children_stop(children, false);
    children_tick(children, now_ms() + 99000);
    assert_int_equal(children_count(children), 1);
    assert_true(children_next(children) < INT64_MAX);
    children_tick(children, now_ms() + 101000);
    assert_true(all_end());
    end();
}

static void a_step_that_has_failed_takes_it_along(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("runs");
    start_one(&wants, false);
    assert_true(until(&nstarted, 1));
    children_let_go(children, CALLER);
    children_stop(children, true);
    assert_true(all_end());
    end();
}

static void one_that_does_not_end_is_killed(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("deaf");
    start_one(&wants, false);
    assert_true(until(&nstarted, 1));
    children_caller_gone(children, CALLER);
    children_tick(children, now_ms() + 4000);
    assert_int_equal(nkilled, 1);
    assert_int_equal(children_count(children), 1);
    children_tick(children, now_ms() + 8000);
    assert_true(all_end());
    assert_int_equal(nkilled, 1);
    end();
}

static void its_start_has_a_time(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("silent");
    start_one(&wants, false);
    children_tick(children, now_ms() + 59000);
    assert_int_equal(nstarted, 0);
    children_tick(children, now_ms() + 61000);
    assert_int_equal(nstarted, 1);
    assert_int_equal(result, RM_SPAWN_TIMEOUT);
    assert_true(all_end());
    end();
}

static void there_is_a_bound(void **state)
{
    struct rm_spawn wants = what();
    (void)state;
    begin("silent");
    for (int i = 0; i < CHILDREN_MAX; i++)
        start_one(&wants, false);
    assert_int_equal(nstarted, 0);
    start_one(&wants, false);
    assert_int_equal(nstarted, 1);
    assert_int_equal(result, RM_SPAWN_NO_RESOURCES);
    children_caller_gone(children, CALLER);
    assert_true(all_end());
    end();
}

static void an_empty_order_is_refused(void **state)
{
    struct wire_in none;
    (void)state;
    begin("seven");
    wire_in_init(&none, "", 0);
    children_start(children, CALLER, &none);
    assert_int_equal(nstarted, 1);
    assert_int_equal(result, RM_SPAWN_FAILED);
    end();
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[0], "srun") == 0)
        return play(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_and_ends),
        cmocka_unit_test(without_free_processors_it_takes_shared_ones),
        cmocka_unit_test(free_processors_are_counted_first),
        cmocka_unit_test(a_job_that_has_grown_shares_processors),
        cmocka_unit_test(steps_are_held),
        cmocka_unit_test(a_job_that_lacks_processors),
        cmocka_unit_test(a_program_that_cannot_be_started),
        cmocka_unit_test(it_ends_with_its_caller),
        cmocka_unit_test(let_go_it_goes_on_until_its_time_is_over),
        cmocka_unit_test(a_step_that_has_failed_takes_it_along),
        cmocka_unit_test(one_that_does_not_end_is_killed),
        cmocka_unit_test(its_start_has_a_time),
        cmocka_unit_test(there_is_a_bound),
        cmocka_unit_test(an_empty_order_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
