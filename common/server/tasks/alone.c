/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the first task's mapped files soon after its start, and at growing intervals. They are
 * read as the task's own user; of the files themselves nothing is read. */
#include "common/server/tasks/alone.h"

#include "common/server/server.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_MS = 10,
    LOOKS = 10 /* each as long after the last as that was after its last: 10 s */
};

struct alone {
    struct timer again;
    unsigned looks;
    char library[64]; /* of the MPI; "": none was found */
    bool told;
};

static bool is_mpi(const char *name)
{
    return strncmp(name, "libmpi", strlen("libmpi")) == 0 && strstr(name, ".so") != NULL;
}

void alone_find_mpi(const char *maps, char *name, size_t cap)
{
    FILE *in = fopen(maps, "re");
    char *line = NULL;
    size_t size = 0;
    bool open_mpi = false;
    name[0] = '\0';
    while (in != NULL && !open_mpi && getline(&line, &size, in) >= 0) {
        char *base = strrchr(line, '/');
        if (base == NULL)
            continue;
        base[strcspn(base, "\n")] = '\0';
        open_mpi = strncmp(base + 1, "libopen-pal", strlen("libopen-pal")) == 0;
        if (name[0] == '\0' && is_mpi(base + 1))
            snprintf(name, cap, "%s", base + 1);
    }
    if (open_mpi)
        name[0] = '\0';
    free(line);
    if (in != NULL)
        fclose(in);
}

static void look(void *arg, struct timer *timer)
{
    struct server *server = arg;
    struct alone *alone = server->alone;
    const struct task *task = &server->tasks[0];
    char maps[64];
    if (task->state != TASK_STARTED)
        return;
    snprintf(maps, sizeof maps, "/proc/%d/maps", (int)task->pid);
    alone_find_mpi(maps, alone->library, sizeof alone->library);
    if (alone->library[0] == '\0' && ++alone->looks < LOOKS)
        timer_after(timer, (int64_t)FIRST_MS << alone->looks);
}

/* What another step has started may be told the reason; a step of one task is no matter. */
void alone_watch(struct server *server)
{
    if (server->boot.node != 0 || server->boot.ntasks < 2 || boot_here(&server->boot)->ntasks < 1 ||
        boot_setting(&server->boot, "parent") != NULL || server->alone != NULL)
        return;
    struct alone *alone = calloc(1, sizeof *alone);
    server->alone = alone;
    timer_init(&alone->again, &server->timers, look, server);
    timer_after(&alone->again, FIRST_MS);
}

/* @return whether no task of this node has called PMIx_Init */
static bool none_connected(const struct server *server)
{
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++)
        if (server->tasks[k].state != TASK_STARTED && server->tasks[k].state != TASK_EARLY)
            return false;
    return true;
}

void alone_ended(struct server *server, const struct task *task)
{
    struct alone *alone = server->alone;
    const char *remedy = boot_setting(&server->boot, "other_pmi");
    if (alone == NULL || alone->told || alone->library[0] == '\0' || server->ending ||
        task->state != TASK_EARLY || task->sig != 0 || task->code != 0 || !none_connected(server))
        return;
    alone->told = true;
    log_error("no task on this node has asked for PMIx, and the program uses %s: each of the %s's "
              "%u tasks runs by itself, as rank 0 of 1; start programs of this MPI with: %s",
              alone->library, log_unit(), server->boot.ntasks,
              remedy != NULL ? remedy : "another PMI");
}

void alone_free(struct server *server)
{
    struct alone *alone = server->alone;
    server->alone = NULL;
    if (alone == NULL)
        return;
    timer_stop(&alone->again);
    free(alone);
}
