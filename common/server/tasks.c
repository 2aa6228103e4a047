#include "common/server/tasks.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix_common.h>
#include <stdio.h>
#include <string.h>

/* The RM ends all tasks of a node within less; an operation that fails for the loss takes longer to
 * reach the tasks that then end, and with them the user's terminal. */
enum { TOGETHER_MS = 5 };

void tasks_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    if (slot >= here->ntasks || server->tasks[slot].state == TASK_ENDED)
        return;
    struct task *task = &server->tasks[slot];
    bool lost = task->state == TASK_CONNECTED;
    task->state = TASK_ENDED;
    task->sig = sig;
    task->code = code;
    log_debug("rank %u ended: signal %u, exit code %u%s", here->ranks[slot], sig, code,
              lost ? ", without PMIx_Finalize" : "");
    if (lost) {
        task->lost = true;
        if (server->report_losses == 0)
            server->report_losses = now_ms() + (here->ntasks > 1 ? TOGETHER_MS : 0);
    }
    engine_local_loss(server->engine);
}

int32_t tasks_status(const struct server *server, const struct signature *sig)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (server->tasks[k].state == TASK_ENDED &&
            procset_has(&sig->members, server->boot.nspace, here->ranks[k]))
            return PMIX_ERR_PROC_TERM_WO_SYNC;
    return 0;
}

int64_t tasks_next(const struct server *server, int64_t now)
{
    if (server->report_losses == 0)
        return -1;
    return server->report_losses <= now ? 0 : server->report_losses - now;
}

static void describe(const struct server *server, uint32_t slot, char *buf, size_t cap)
{
    const struct task *task = &server->tasks[slot];
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    if (task->sig != 0)
        snprintf(buf, cap, "rank %u on %s was killed by signal %u (%s) before PMIx_Finalize",
                 here->ranks[slot], here->name, task->sig, strsignal((int)task->sig));
    else if (task->code == BOOT_CODE_UNKNOWN)
        snprintf(buf, cap, "rank %u on %s ended without PMIx_Finalize", here->ranks[slot],
                 here->name);
    else
        snprintf(buf, cap, "rank %u on %s ended with exit code %u and without PMIx_Finalize",
                 here->ranks[slot], here->name, task->code);
}

void tasks_tick(struct server *server, int64_t now)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    uint32_t lost = 0, first = 0;
    char text[256];
    if (server->report_losses == 0 || server->report_losses > now)
        return;
    server->report_losses = 0;
    for (uint32_t k = here->ntasks; k-- > 0;)
        if (server->tasks[k].lost) {
            lost++;
            first = k;
        }
    describe(server, first, text, sizeof text);
    if (server->ending || (lost == here->ntasks && lost > 1)) {
        log_info("%s, and so were %u others here", text, lost - 1);
        return;
    }
    for (uint32_t k = 0; k < here->ntasks; k++) {
        if (!server->tasks[k].lost || server->tasks[k].told)
            continue;
        server->tasks[k].told = true;
        describe(server, k, text, sizeof text);
        log_error("%s%s", text,
                  server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP ? "; ending the step" : "");
    }
    if (server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP) {
        server->ending = true;
        server->rm_ops->abort(server->rm, text);
    }
}
