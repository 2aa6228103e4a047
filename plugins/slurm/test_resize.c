/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the changes of an allocation in the agent. This program plays Slurm's commands, too,
 * when it is started by their names: the variable PLAY says how. What they do to the job stands in
 * files of a directory.
 */
#include "plugins/slurm/agent_resize.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "plugins/slurm/alloc_wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 30000, JOB = 4711, EXPANDER = 4712 };

static char dir[] = "/tmp/muster-resize-XXXXXX";

/* ---- files ---- */

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void note(const char *name, const char *text)
{
    FILE *out = fopen(path_of(name), "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static bool has(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static void expect(const char *name, const char *expected)
{
    char text[512] = "";
    FILE *in = fopen(path_of(name), "r");
    assert_non_null(in);
    assert_true(fgets(text, sizeof text, in) != NULL || text[0] == '\0');
    fclose(in);
    assert_string_equal(text, expected);
}

/* ---- Slurm's commands ---- */

static const char *option(char **argv, const char *name)
{
    for (; *argv != NULL; argv++)
        if (strncmp(*argv, name, strlen(name)) == 0)
            return *argv + strlen(name);
    return NULL;
}

static int play_salloc(char **argv, const char *how)
{
    char text[512];
    if (strcmp(how, "forbidden") == 0) {
        fprintf(stderr, "salloc: error: Job submit/allocate failed: Requested operation not "
                        "supported on this system\n");
        return 1;
    }
    fprintf(stderr, "salloc: Granted job allocation %d\n", EXPANDER);
    note("asks", "");
    if (strcmp(how, "deaf") == 0) {
        signal(SIGTERM, SIG_IGN);
        while (!has("told"))
            usleep(1000);
    }
    while (strcmp(how, "waits") == 0)
        pause();
    if (strcmp(how, "killed") == 0)
        kill(getpid(), SIGKILL);
    snprintf(text, sizeof text, "%s %s %s %s %s", option(argv, "--dependency="),
             option(argv, "--nodes="), option(argv, "--exclude="), option(argv, "--partition="),
             option(argv, "--time="));
    note("expander", text);
    note("grown", "");
    return 0;
}

static int play(const char *name, char **argv)
{
    const char *how = getenv("PLAY"), *where = getenv("PLAY_DIR"), *keep;
    snprintf(dir, sizeof dir, "%s", where);
    if (strcmp(name, "salloc") == 0)
        return play_salloc(argv, how);
    if (strcmp(name, "scancel") == 0) {
        note("cancelled", argv[1]);
        return 0;
    }
    if (strcmp(argv[1], "--oneliner") == 0) {
        printf("JobId=%s RunTime=00:10:30 TimeLimit=1-00:00:00 Partition=own QOS=(null) "
               "Account=sea OverSubscribe=%s Contiguous=0\n",
               argv[4], strcmp(how, "shares") == 0 ? "OK" : "NO");
        return 0;
    }
    keep = option(argv, "NodeList=");
    note("kept", keep != NULL ? keep : option(argv, "TimeLimit="));
    if (strcmp(how, "denied") == 0) {
        fprintf(stderr, "slurm_update error: Access/permission denied for job %d\n", JOB);
        return 1;
    }
    unlink(path_of("grown"));
    return 0;
}

/* ---- the agent ---- */

static struct resizes *resizes;
static unsigned nanswers;
static uint64_t answered; /* the last caller */
static struct rm_alloc_news news;
static char text[ALLOC_TEXT_MAX], *nodes;
static bool quiet, held, grown, node3_in_use;

static void on_tell(void *arg, uint64_t caller, const struct wire_out *out)
{
    struct agent_frame frame;
    (void)arg;
    free(nodes);
    assert_int_equal(agent_frame_read(out->data, out->len, AGENT_FRAME_MAX, &frame), 1);
    assert_int_equal(frame.type, AGENT_ALLOCATED);
    assert_true(alloc_get_news(&frame.body, &news, text, &nodes));
    answered = caller;
    nanswers++;
}

static bool on_hold(void *arg, bool on)
{
    (void)arg;
    held = on;
    return quiet;
}

static void on_grown(void *arg)
{
    (void)arg;
    grown = true;
}

/* node1, and node3 while the job is grown. */
static int on_nodes(uint32_t job, struct job_nodes *to)
{
    assert_int_equal(job, JOB);
    *to = (struct job_nodes){.nodes = calloc(2, sizeof *to->nodes), .n = has("grown") ? 2 : 1};
    assert_non_null(to->nodes);
    to->nodes[0] = (struct job_node){.name = strdup("node1"), .cpus = 16};
    if (to->n > 1)
        to->nodes[1] = (struct job_node){.name = strdup("node3"), .cpus = 8};
    return 0;
}

static int on_use(uint32_t job, struct job_nodes *of)
{
    assert_int_equal(job, JOB);
    of->nodes[0].in_use = true;
    if (of->n > 1)
        of->nodes[1].in_use = node3_in_use;
    return 0;
}

static char *on_split(const char *list)
{
    return strdup(list);
}

void job_nodes_free(struct job_nodes *of)
{
    for (uint32_t i = 0; i < of->n; i++)
        free(of->nodes[i].name);
    free(of->nodes);
    *of = (struct job_nodes){0};
}

struct job_node *job_nodes_find(const struct job_nodes *of, const char *name)
{
    for (uint32_t i = 0; i < of->n; i++)
        if (strcmp(of->nodes[i].name, name) == 0)
            return &of->nodes[i];
    return NULL;
}

static void sink(void *arg, enum log_level level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static void begin(const char *how)
{
    static char variable[64], place[300];
    char *env[] = {variable, place, NULL};
    static const char *const files[] = {"asks", "expander", "grown", "cancelled", "kept", "told"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path_of(files[i]));
    snprintf(variable, sizeof variable, "PLAY=%s", how);
    snprintf(place, sizeof place, "PLAY_DIR=%s", dir);
    const struct resize_env wants = {.directory = dir,
                                     .job = JOB,
                                     .variables = env,
                                     .tell = on_tell,
                                     .hold = on_hold,
                                     .grown = on_grown,
                                     .nodes = on_nodes,
                                     .use = on_use,
                                     .split = on_split};
    log_open(sink, NULL, LOG_LEVEL_ERROR, NULL);
    nanswers = 0;
    quiet = true;
    held = grown = node3_in_use = false;
    resizes = resizes_new(&wants);
    assert_non_null(resizes);
}

static void end(void)
{
    assert_int_equal(resizes_count(resizes), 0);
    assert_false(held);
    resizes_free(resizes);
}

static void start(uint64_t caller, const struct rm_alloc *what)
{
    struct wire_out out = {0};
    struct wire_in in;
    alloc_put(&out, what);
    wire_in_init(&in, out.data, out.len);
    resizes_start(resizes, caller, &in);
    wire_out_free(&out);
}

static void turn(void)
{
    struct pollfd fds[TOOL_FDS];
    resizes_tick(resizes, now_ms());
    resizes_poll(resizes, fds);
    poll(fds, TOOL_FDS, 10);
    resizes_ready(resizes, fds);
}

/* Runs the agent's loop until so many answers were given. */
static void until_answers(unsigned n)
{
    int64_t by = now_ms() + WAIT_MS;
    while (nanswers < n && now_ms() < by)
        turn();
    assert_int_equal(nanswers, n);
}

static void until_file(const char *name)
{
    int64_t by = now_ms() + WAIT_MS;
    while (!has(name) && now_ms() < by)
        turn();
    assert_true(has(name));
}

static void until_none(void)
{
    int64_t by = now_ms() + WAIT_MS;
    while (resizes_count(resizes) > 0 && now_ms() < by)
        turn();
    assert_int_equal(resizes_count(resizes), 0);
}

static const struct rm_alloc more = {.kind = RM_ALLOC_EXTEND, .nnodes = 1, .timeout = 60};
static const struct rm_alloc less = {.kind = RM_ALLOC_RELEASE, .nodes = "node3", .timeout = 60};

/* ---- tests ---- */

static void a_job_grows_and_shrinks(void **state)
{
    (void)state;
    begin("good");
    start(7, &more);
    start(8, &less); /* waits for the first one */
    until_answers(1);
    assert_int_equal(answered, 7);
    assert_int_equal(news.result, RM_ALLOC_DONE);
    assert_string_equal(nodes, "node3");
    assert_int_equal(news.nnodes, 1);
    assert_int_equal(news.ncpus, 8);
    assert_true(grown);
    expect("expander", "expand:4711 1-1 node1 own 1429");
    until_answers(2);
    assert_int_equal(answered, 8);
    assert_int_equal(news.result, RM_ALLOC_DONE);
    assert_string_equal(nodes, "node3");
    expect("kept", "node1");
    end();
}

static void what_slurm_forbids_is_said(void **state)
{
    static const struct rm_alloc hour = {.kind = RM_ALLOC_TIME, .seconds = 3601, .timeout = 60};
    (void)state;
    begin("forbidden");
    start(7, &more);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_FORBIDDEN);
    assert_non_null(strstr(text, "permit_job_expansion"));
    end();
    begin("shares");
    start(7, &more);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_REFUSED);
    assert_non_null(strstr(text, "--exclusive"));
    end();
    begin("denied");
    start(7, &hour);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_FORBIDDEN);
    assert_string_equal(text, "Slurm says: Access/permission denied for job "
                              "4711");
    expect("kept", "61");
    end();
}

static void a_time_limit(void **state)
{
    static const struct rm_alloc hour = {.kind = RM_ALLOC_TIME, .seconds = 3600, .timeout = 60};
    (void)state;
    begin("good");
    start(7, &hour);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_DONE);
    assert_int_equal(news.nnodes, 0);
    expect("kept", "60");
    end();
}

static void a_queue_that_is_not_the_jobs(void **state)
{
    struct rm_alloc elsewhere = more;
    (void)state;
    begin("good");
    elsewhere.queue = "other";
    start(7, &elsewhere);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_REFUSED);
    assert_false(has("asks"));
    end();
}

static void nodes_with_processes_stay(void **state)
{
    static const struct rm_alloc two = {.kind = RM_ALLOC_RELEASE, .nnodes = 2, .timeout = 60};
    static const struct rm_alloc no_node = {
        .kind = RM_ALLOC_RELEASE, .nodes = "node9", .timeout = 60};
    (void)state;
    begin("good");
    note("grown", "");
    start(7, &two); /* one of the two is used */
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_IN_USE);
    start(7, &no_node);
    until_answers(2);
    assert_int_equal(news.result, RM_ALLOC_WRONG);
    node3_in_use = true;
    start(7, &less);
    until_answers(3);
    assert_int_equal(news.result, RM_ALLOC_IN_USE);
    assert_false(has("kept"));
    end();
}

/* While an srun asks for a step nobody knows where that will be. */
static void a_release_waits_for_steps_that_start(void **state)
{
    (void)state;
    begin("good");
    note("grown", "");
    quiet = false;
    start(7, &less);
    turn();
    assert_true(held);
    assert_false(has("kept"));
    quiet = true;
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_DONE);
    end();
}

static void who_has_gone_gets_nothing(void **state)
{
    (void)state;
    begin("waits");
    start(7, &more);
    start(8, &more);
    until_file("asks");
    assert_true(resizes_has(resizes, 7));
    resizes_caller_gone(resizes, 8);
    resizes_caller_gone(resizes, 7);
    until_none(); /* salloc was told to end, and the second request is not begun */
    assert_int_equal(nanswers, 0);
    assert_false(has("grown"));
    end();
}

static void nodes_that_come_for_nobody_go(void **state)
{
    (void)state;
    begin("deaf");
    start(7, &more);
    until_file("asks");
    resizes_caller_gone(resizes, 7);
    note("told", "");
    until_none();
    assert_int_equal(nanswers, 0);
    expect("kept", "node1");
    assert_false(has("grown"));
    end();
}

static void a_request_has_a_time(void **state)
{
    struct rm_alloc soon = more;
    (void)state;
    begin("waits");
    soon.timeout = 1;
    start(7, &soon);
    until_file("asks");
    assert_true(resizes_next(resizes) < now_ms() + 10000);
    resizes_tick(resizes, now_ms() + 10000);
    until_answers(1);
    assert_int_equal(news.result, RM_ALLOC_LATE);
    end();
}

static void the_expander_of_a_killed_salloc_is_cancelled(void **state)
{
    (void)state;
    begin("killed");
    start(7, &more);
    until_answers(1);
    assert_true(news.result != RM_ALLOC_DONE);
    expect("cancelled", "4712");
    end();
}

static void srun_ends(void **state)
{
    (void)state;
    begin("waits");
    start(7, &more);
    until_file("asks");
    resizes_stop(resizes);
    start(8, &more);
    assert_int_equal(answered, 8);
    until_none();
    assert_false(has("grown"));
    end();
}

int main(int argc, char **argv)
{
    static const char *const commands[] = {"salloc", "scontrol", "scancel"};
    static char self[4096];
    const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (argc > 1 && strcmp(name, commands[i]) == 0)
            return play(name, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_grows_and_shrinks),
        cmocka_unit_test(what_slurm_forbids_is_said),
        cmocka_unit_test(a_time_limit),
        cmocka_unit_test(a_queue_that_is_not_the_jobs),
        cmocka_unit_test(nodes_with_processes_stay),
        cmocka_unit_test(a_release_waits_for_steps_that_start),
        cmocka_unit_test(who_has_gone_gets_nothing),
        cmocka_unit_test(nodes_that_come_for_nobody_go),
        cmocka_unit_test(a_request_has_a_time),
        cmocka_unit_test(the_expander_of_a_killed_salloc_is_cancelled),
        cmocka_unit_test(srun_ends),
    };
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0 || mkdtemp(dir) == NULL)
        return 1;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (symlink(self, path_of(commands[i])) != 0)
            return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(nodes);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        unlink(path_of(commands[i]));
    static const char *const files[] = {"asks", "expander", "grown", "cancelled", "kept", "told"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path_of(files[i]));
    rmdir(dir);
    return rc;
}
