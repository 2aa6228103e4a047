/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks run as the server's own user, so /proc shows what they are, unless a program has made
 * itself not dumpable or changed its user. */
#include "common/server/status/census.h"

#include "common/util/cmdline.h"

#include <limits.h>
#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGNAL_CODE = 128, KIB = 1024, TASK_LEAST = 4 + 4 + 1 + 4 + 4 /* bytes on the wire */ };

static uint8_t state_of(const struct task *task)
{
    switch (task->state) {
    case TASK_STARTED:
        return task->pid > 0 ? PMIX_PROC_STATE_RUNNING : PMIX_PROC_STATE_LAUNCH_UNDERWAY;
    case TASK_CONNECTED:
        return PMIX_PROC_STATE_CONNECTED;
    case TASK_FINALIZED:
        return PMIX_PROC_STATE_RUNNING;
    default:
        break;
    }
    return task->sig != 0                                       ? PMIX_PROC_STATE_ABORTED_BY_SIG
           : task_is_lost(task)                                 ? PMIX_PROC_STATE_TERM_WO_SYNC
           : task->code != 0 && task->code != BOOT_CODE_UNKNOWN ? PMIX_PROC_STATE_TERM_NON_ZERO
                                                                : PMIX_PROC_STATE_TERMINATED;
}

static int32_t code_of(const struct task *task)
{
    if (!task_has_ended(task))
        return 0;
    if (task->sig != 0)
        return SIGNAL_CODE + (int32_t)task->sig;
    return task->code == BOOT_CODE_UNKNOWN ? -1 : (int32_t)task->code;
}

/* For the moment between a task's end and the launcher's word of it, its number may be another
 * process's. If that process is the user's, it is shown instead of the task. */
static bool is_there(const struct task *task)
{
    return !task_has_ended(task) && task->pid > 0;
}

static char *program_of(const struct task *task)
{
    char link[32], path[PATH_MAX];
    ssize_t len = -1;
    if (is_there(task)) {
        snprintf(link, sizeof link, "/proc/%d/exe", (int)task->pid);
        len = readlink(link, path, sizeof path - 1);
    }
    path[len > 0 ? len : 0] = '\0';
    return strdup(path);
}

static void take_tasks(const struct server *server, struct census *census)
{
    const struct boot_node *here = boot_here(&server->boot);
    census->ntasks = here->ntasks;
    census->tasks = calloc(here->ntasks + 1ul, sizeof *census->tasks);
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        census->tasks[k] = (struct census_task){.rank = here->ranks[k],
                                                .pid = (uint32_t)task->pid,
                                                .state = state_of(task),
                                                .code = code_of(task),
                                                .program = program_of(task)};
    }
}

/* All tasks of a node are of one application. The first that can be seen is taken. */
static void take_command(const struct server *server, struct census *census)
{
    const char *known = boot_setting(&server->boot, "argv");
    if (known != NULL)
        census->command = strdup(known);
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++)
        if (census->command == NULL && is_there(&server->tasks[k]))
            census->command = cmdline_read(server->tasks[k].pid, BOOT_ARGV_MAX);
}

/* @return whether the kernel tells what a process has in memory, pages that it shares included */
static bool resident(pid_t pid, uint64_t *kib)
{
    char path[32];
    unsigned long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *in = fopen(path, "re");
    bool read = in != NULL && fscanf(in, "%*u %llu", &pages) == 1;
    if (in != NULL)
        fclose(in);
    *kib = pages * (uint64_t)sysconf(_SC_PAGESIZE) / KIB;
    return read;
}

static void take_memory(const struct server *server, struct census *census)
{
    uint64_t kib;
    if (resident(getpid(), &kib))
        census->server_kib = kib;
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++)
        if (is_there(&server->tasks[k]) && resident(server->tasks[k].pid, &kib)) {
            census->tasks_kib += kib;
            census->counted++;
        }
}

void census_take(const struct server *server, unsigned parts, struct census *census)
{
    *census = (struct census){0};
    if ((parts & CENSUS_TASKS) != 0)
        take_tasks(server, census);
    if ((parts & CENSUS_COMMAND) != 0)
        take_command(server, census);
    if ((parts & CENSUS_MEMORY) != 0)
        take_memory(server, census);
}

void census_write(const struct census *census, unsigned parts, struct wire_out *out)
{
    if ((parts & CENSUS_TASKS) != 0) {
        wire_put_u32(out, census->ntasks);
        for (uint32_t i = 0; i < census->ntasks; i++) {
            const struct census_task *t = &census->tasks[i];
            wire_put_u32(out, t->rank);
            wire_put_u32(out, t->pid);
            wire_put_u8(out, t->state);
            wire_put_i32(out, t->code);
            wire_put_str(out, t->program);
        }
    }
    if ((parts & CENSUS_COMMAND) != 0)
        wire_put_str(out, census->command);
    if ((parts & CENSUS_MEMORY) != 0) {
        wire_put_u64(out, census->server_kib);
        wire_put_u64(out, census->tasks_kib);
        wire_put_u32(out, census->counted);
    }
}

static void read_tasks(struct census *census, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, TASK_LEAST);
    census->tasks = calloc(n + 1ul, sizeof *census->tasks);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct census_task *t = &census->tasks[i];
        t->rank = wire_get_u32(in);
        t->pid = wire_get_u32(in);
        t->state = wire_get_u8(in);
        t->code = wire_get_i32(in);
        t->program = wire_get_strdup(in, PATH_MAX);
        census->ntasks = i + 1;
    }
}

int census_read(struct census *census, unsigned parts, struct wire_in *in)
{
    *census = (struct census){0};
    if ((parts & CENSUS_TASKS) != 0)
        read_tasks(census, in);
    if ((parts & CENSUS_COMMAND) != 0)
        census->command = wire_get_strdup(in, BOOT_ARGV_MAX);
    if ((parts & CENSUS_MEMORY) != 0) {
        census->server_kib = wire_get_u64(in);
        census->tasks_kib = wire_get_u64(in);
        census->counted = wire_get_u32(in);
    }
    return wire_end(in) ? 0 : -1;
}

void census_free(struct census *census)
{
    for (uint32_t i = 0; i < census->ntasks; i++)
        free(census->tasks[i].program);
    free(census->tasks);
    free(census->command);
    *census = (struct census){0};
}
