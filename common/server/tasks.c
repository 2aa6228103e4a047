#include "common/server/tasks.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <pmix_common.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The RM ends all tasks of a node within less; an operation that fails for the loss takes longer to
 * reach the tasks that then end, and with them the user's terminal. */
enum { TOGETHER_MS = 5, NOTICE_MS = 50 };

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
        server->report_losses = now_ms() + TOGETHER_MS;
    } else {
        engine_local_loss(server->engine);
    }
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

bool tasks_loss_is_told(struct server *server)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (server->tasks[k].told)
            return true;
    if (server->ending || server->report_losses != 0)
        return server->ending;
    server->report_losses = now_ms() + NOTICE_MS; /* it must be on its way */
    return false;
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

/* Says who is lost, and ends the step if that is the setting. */
static void tell(struct server *server)
{
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    uint32_t lost = 0, killed = 0, failed = 0;
    char text[256] = "";
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        lost += task->lost;
        killed += task->lost && task->sig != 0 && task->sig == server->tasks[0].sig;
        failed += task->lost && (task->sig != 0 || task->code != 0);
    }
    /* All at once by such a signal: most likely the RM has ended them, and it says so itself. */
    bool quiet =
        server->ending || (killed == here->ntasks && killed > 1 &&
                           (server->tasks[0].sig == SIGKILL || server->tasks[0].sig == SIGTERM));
    bool end = server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP && !server->ending && lost > 0;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (!task->lost || task->told)
            continue;
        server->tasks[k].told = true;
        /* Those that only left when another failed are no news beside it. */
        bool follower = failed > 0 && task->sig == 0 && task->code == 0;
        describe(server, k, text, sizeof text);
        log_write(quiet || follower ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "%s%s", text,
                  end ? "; ending the step" : "");
    }
    if (end)
        server_end_step(server, text, NULL);
}

void tasks_tick(struct server *server, int64_t now)
{
    if (server->report_losses == 0 || server->report_losses > now)
        return;
    server->report_losses = 0;
    tell(server);
    engine_local_loss(server->engine);
    server_resume(server);
}
