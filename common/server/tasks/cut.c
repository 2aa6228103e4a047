/* SPDX-License-Identifier: BSD-3-Clause */
/* See cut.h. */
#include "common/server/tasks/cut.h"

#include "common/util/clock.h"
#include "common/util/log.h"

void cut_own(struct server *server, uint32_t slot)
{
    struct task *task = &server->tasks[slot];
    const struct boot_node *here = boot_here(&server->boot);
    if (!task_move(task, here->ranks[slot], TASK_CLOSE) || task->state != TASK_CUT)
        return;
    task->at = now_ms();
    if (server->boot.ntasks > 1) /* else no process waits for it */
        server->cut_due = earlier(server->cut_due, task->at + CUT_MS);
}

void cut_beside(struct server *server, uint32_t slot)
{
    if (server->beside == BESIDE_SEEN || server->beside == BESIDE_TOLD)
        return;
    server->beside = BESIDE_SEEN;
    server->beside_slot = slot;
    server->beside_due = now_ms() + CUT_BESIDE_MS;
}

int64_t cut_next(const struct server *server, int64_t now)
{
    return ms_until(earlier(server->cut_due, server->beside_due), now);
}

static void tell_beside(struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    server->beside_due = 0;
    server->beside = BESIDE_NONE;
    if (server->ending || server->told_to_leave ||
        task_has_ended(&server->tasks[server->beside_slot]))
        return;
    server->beside = BESIDE_TOLD;
    log_error("a program that rank %u on %s has started used PMIx as that same rank, and ended "
              "without PMIx_Finalize; start such programs with: env -u PMIX_NAMESPACE -u PMIX_RANK",
              here->ranks[server->beside_slot], here->name);
}

bool cut_tick(struct server *server, int64_t now, uint32_t *slot)
{
    int64_t due = 0;
    bool found = false;
    if (server->beside_due != 0 && server->beside_due <= now)
        tell_beside(server);
    if (server->cut_due == 0 || server->cut_due > now)
        return false;
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (task->state != TASK_CUT || server->ending || server->told_to_leave)
            continue;
        if (!found && task->at + CUT_MS <= now) {
            *slot = k;
            found = true;
            continue;
        }
        due = earlier(due, task->at + CUT_MS);
    }
    server->cut_due = due;
    return found;
}
