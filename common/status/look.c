/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * eu-stack takes some milliseconds a process and is asked first; gdb takes half a second and more.
 */
#include "common/status/look.h"

#include "common/status/fields.h"
#include "common/status/process.h"
#include "common/status/program.h"
#include "common/status/stack.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ALL_MS = 9000, /* until the last one is started, or killed */
    ONE_MS = 5000,
    AT_ONCE_MIN = 4, /* they wait for files and for each other's processes, too */
    AT_ONCE_MAX = 16,
    SAID_MAX = 1 << 18,
    ARGS_MAX = 16,
    REASON_MAX = 160,
};

/* One process that is looked at. */
struct job {
    json_object *task; /* of whom; borrowed */
    struct program program;
    int64_t deadline;
    char *said;
    size_t len;
};

struct look {
    bool gdb; /* else eu-stack */
    const struct rlimit *memory;
    int64_t deadline;
    bool clean; /* no program was killed */
    struct job jobs[AT_ONCE_MAX];
    unsigned most;
};

static void explain(json_object *task, const char *why)
{
    json_object_object_add(task, "no_stack", json_object_new_string(why));
}

static int yama_scope(void)
{
    int scope = 0;
    FILE *in = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (in != NULL && fscanf(in, "%d", &scope) != 1)
        scope = 0;
    if (in != NULL)
        fclose(in);
    return scope;
}

/* What the last message says, without the process's number, which would differ for each rank. */
static void explain_silence(const struct look *look, const struct job *job)
{
    char reason[REASON_MAX], *rest = job->said, *line, *last = NULL;
    const char *tool = look->gdb ? "gdb" : "eu-stack";
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strstr(line, ": ") != NULL)
            last = strrchr(line, ':') + 1;
    if (last != NULL)
        last[strcspn(last, ".")] = '\0';
    const char *what = last != NULL ? last + strspn(last, " ") : "it has found none";
    bool refused = strstr(what, "not permitted") != NULL || strstr(what, "denied") != NULL;
    if (refused && yama_scope() > 0)
        snprintf(reason, sizeof reason,
                 "kernel.yama.ptrace_scope is %d, so %s may look at no process; an administrator "
                 "can set it to 0",
                 yama_scope(), tool);
    else
        snprintf(reason, sizeof reason, "%s: %s", tool, what);
    log_mask(reason);
    explain(job->task, reason);
}

/* Its program has ended, or is killed here. @param late it has had its time */
static void finish(struct look *look, struct job *job, bool late)
{
    if (late)
        kill(job->program.pid, SIGKILL);
    int status = program_end(&job->program);
    look->clean &= WIFEXITED(status);
    job->said[job->len] = '\0';
    char *copy = strdup(job->said);
    json_object *stack = copy != NULL ? stack_read(copy) : NULL;
    if (stack != NULL)
        json_object_object_add(job->task, "stack", stack);
    else if (late)
        explain(job->task, "not within its time");
    else
        explain_silence(look, job);
    free(copy);
    free(job->said);
    job->said = NULL;
}

static void start(struct look *look, struct job *job, json_object *task, pid_t pid)
{
    char number[16];
    char *const eu_stack[] = {(char *)"eu-stack", (char *)"-1", (char *)"-p", number, NULL};
    char *const gdb[ARGS_MAX] = {(char *)"gdb",
                                 (char *)"--batch",
                                 (char *)"-nx",
                                 (char *)"-iex",
                                 (char *)"set auto-load off",
                                 (char *)"-iex",
                                 (char *)"set print frame-arguments none",
                                 (char *)"-ex",
                                 (char *)"backtrace",
                                 (char *)"-p",
                                 number,
                                 NULL};
    const struct program_plan plan = {.argv = look->gdb ? gdb : eu_stack,
                                      .death = SIGKILL,
                                      .reads_out = true,
                                      .reads_errors = true,
                                      .no_input = true,
                                      .memory = look->memory};
    snprintf(number, sizeof number, "%d", (int)pid);
    job->said = malloc(SAID_MAX + 1);
    job->len = 0;
    job->task = task;
    job->deadline = now_ms() + ONE_MS;
    if (job->deadline > look->deadline)
        job->deadline = look->deadline;
    if (job->said != NULL && program_start(&job->program, &plan) == 0)
        return;
    explain(task, strerror(errno));
    free(job->said);
    job->said = NULL;
}

/* More of what a program says. What is too long is cut. */
static void take(struct look *look, struct job *job)
{
    char rest[4096];
    bool full = job->len == SAID_MAX;
    ssize_t n = read(job->program.out, full ? rest : job->said + job->len,
                     full ? sizeof rest : SAID_MAX - job->len);
    if (n > 0)
        job->len += full ? 0 : (size_t)n;
    else if (n == 0 || errno != EINTR)
        finish(look, job, false);
}

/* Waits for what runs. @return how many run */
static unsigned wait_some(struct look *look)
{
    struct pollfd fds[AT_ONCE_MAX];
    int64_t first = look->deadline;
    unsigned n = 0, open = 0;
    for (unsigned i = 0; i < look->most; i++) {
        struct job *job = &look->jobs[i];
        fds[i] = (struct pollfd){.fd = job->said != NULL ? job->program.out : -1, .events = POLLIN};
        if (job->said != NULL && job->deadline < first)
            first = job->deadline;
        open += job->said != NULL;
    }
    if (open == 0 || poll(fds, look->most, deadline_left(first)) < 0)
        return open;
    for (unsigned i = 0; i < look->most; i++) {
        struct job *job = &look->jobs[i];
        if (job->said != NULL && fds[i].revents != 0)
            take(look, job);
        if (job->said != NULL && now_ms() >= job->deadline)
            finish(look, job, true);
        n += job->said != NULL;
    }
    return n;
}

static struct job *room(struct look *look)
{
    for (unsigned i = 0; i < look->most; i++)
        if (look->jobs[i].said == NULL)
            return &look->jobs[i];
    return NULL;
}

/* All that the job's cgroup lets us have: a resource manager may have bound us to one. */
static unsigned processors(void)
{
    cpu_set_t set;
    memset(&set, 0xff, sizeof set);
    if (sched_setaffinity(0, sizeof set, &set) != 0 || sched_getaffinity(0, sizeof set, &set) != 0)
        return AT_ONCE_MIN;
    int n = 2 * CPU_COUNT(&set);
    return n < AT_ONCE_MIN ? AT_ONCE_MIN : n > AT_ONCE_MAX ? AT_ONCE_MAX : (unsigned)n;
}

static void look_at_task(struct look *look, const struct proctab *tab, json_object *task)
{
    struct job *job;
    pid_t pid = (pid_t)field_number(task, "pid", 0);
    if (pid <= 0)
        return;
    while ((job = room(look)) == NULL)
        wait_some(look);
    if (now_ms() >= look->deadline)
        explain(task, "not within 9 s, as there are so many");
    else
        start(look, job, task, process_of_task(tab, pid));
}

bool look_at_tasks(json_object *node, const struct rlimit *memory)
{
    struct look look = {.gdb = !program_is_there("eu-stack"),
                        .memory = memory,
                        .deadline = now_ms() + ALL_MS,
                        .clean = true,
                        .most = processors()};
    json_object *tasks = field_list(node, "tasks");
    struct proctab tab = {0};
    bool none = look.gdb && !program_is_there("gdb");
    unsetenv("DEBUGINFOD_URLS"); /* it would ask the network for each file */
    setenv("LC_ALL", "C", 1);
    if (!none && proctab_read(&tab) != 0)
        none = true;
    for (size_t i = 0; i < field_length(tasks); i++) {
        json_object *task = field_at(tasks, i);
        if (none && field_number(task, "pid", 0) > 0)
            explain(task, "neither eu-stack nor gdb is on the node; install elfutils");
        else if (!none)
            look_at_task(&look, &tab, task);
    }
    while (wait_some(&look) > 0)
        ;
    proctab_free(&tab);
    return look.clean;
}
