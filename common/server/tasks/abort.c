/* SPDX-License-Identifier: BSD-3-Clause */
/* Some processes of the step are aborted, and the step goes on without them. */
#include "common/server/tasks/abort.h"

#include "common/util/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* The launcher reaps a task and tells of its end within milliseconds: until then the number is no
 * other process's. */
void abort_started(struct server *server, uint32_t slot)
{
    struct task *task = &server->tasks[slot];
    pid_t pid = task->pid;
    if (task->aborted && pid > 0 && !task_has_ended(task) && kill(pid, SIGKILL) != 0)
        log_warning("rank %u cannot be aborted: %s", boot_here(&server->boot)->ranks[slot],
                    strerror(errno));
}

/* A task that the launcher has not told of yet is killed when it does. */
static void kill_here(struct server *server, const struct procset *set)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++) {
        if (task_has_ended(&server->tasks[k]) ||
            !procset_has(set, server->boot.nspace, here->ranks[k]))
            continue;
        server->tasks[k].aborted = true;
        abort_started(server, k);
    }
}

void abort_some(struct server *server, const struct procset *set)
{
    struct wire_out frame = {0};
    wire_put_u8(&frame, FRAME_ABORT);
    procset_write(set, &frame);
    server_say(server, &frame);
    kill_here(server, set);
}

void abort_receive(struct server *server, const void *body, size_t len)
{
    struct procset set = {0};
    struct wire_in in;
    wire_in_init(&in, body, len);
    procset_read(&set, &in);
    if (wire_end(&in))
        kill_here(server, &set);
    procset_free(&set);
}
