/* SPDX-License-Identifier: BSD-3-Clause */
/* See cut.h. */
#include "common/server/tasks/cut.h"

#include "common/util/clock.h"
#include "common/util/log.h"

static void on_cut(void *arg, struct timer *timer)
{
    struct server *server = arg;
    const struct task *task = TIMER_OF(timer, struct task, cut);
    if (task->state == TASK_CUT && !server->ending && !server->told_to_leave)
        server->hooks->task_gone(server, (uint32_t)(task - server->tasks));
}

void cut_own(struct server *server, uint32_t slot)
{
    struct task *task = &server->tasks[slot];
    const struct boot_node *here = boot_here(&server->boot);
    if (!task_move(task, here->ranks[slot], TASK_CLOSE) || task->state != TASK_CUT)
        return;
    task->at = now_ms();
    if (server->boot.ntasks == 1)
        return; /* no process waits for it */
    timer_init(&task->cut, &server->timers, on_cut, server);
    timer_after(&task->cut, CUT_MS);
}

static void tell_beside(void *arg, struct timer *timer)
{
    struct server *server = arg;
    const struct boot_node *here = boot_here(&server->boot);
    (void)timer;
    server->beside = BESIDE_NONE;
    if (server->ending || server->told_to_leave ||
        task_has_ended(&server->tasks[server->beside_slot]))
        return;
    server->beside = BESIDE_TOLD;
    log_error("a program that rank %u on %s has started used PMIx as that same rank, and ended "
              "without PMIx_Finalize; start such programs with: env -u PMIX_NAMESPACE -u PMIX_RANK",
              here->ranks[server->beside_slot], here->name);
}

void cut_beside(struct server *server, uint32_t slot)
{
    if (server->beside == BESIDE_SEEN || server->beside == BESIDE_TOLD)
        return;
    server->beside = BESIDE_SEEN;
    server->beside_slot = slot;
    timer_init(&server->beside_due, &server->timers, tell_beside, server);
    timer_after(&server->beside_due, CUT_BESIDE_MS);
}
