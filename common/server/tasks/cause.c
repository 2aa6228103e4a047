/* SPDX-License-Identifier: BSD-3-Clause */
/* See cause.h. */
#include "common/server/tasks/cause.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void cause_describe(const struct server *server, uint32_t slot, char *buf, size_t cap)
{
    const struct task *task = &server->tasks[slot];
    const struct boot_node *here = boot_here(&server->boot);
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

bool cause_may_be_of_rm(uint32_t sig)
{
    return sig == SIGKILL || sig == SIGTERM;
}

uint32_t cause_common_signal(const struct server *server)
{
    uint32_t n = boot_here(&server->boot)->ntasks, sig = server->tasks[0].sig;
    for (uint32_t k = 0; k < n; k++)
        if (!task_is_lost(&server->tasks[k]) || server->tasks[k].sig != sig ||
            server->tasks[k].aborted)
            return 0;
    return (n > 1 || server->boot.nnodes > 1) && cause_may_be_of_rm(sig) ? sig : 0;
}

bool cause_is_follower(const struct server *server, const struct task *task)
{
    const struct boot_node *here = boot_here(&server->boot);
    bool failed = false;
    for (uint32_t k = 0; k < here->ntasks; k++)
        failed |= task_is_lost(&server->tasks[k]) &&
                  (server->tasks[k].sig != 0 || server->tasks[k].code != 0);
    return failed && task->sig == 0 && task->code == 0;
}

/* Whether task @p a is rather the cause than task @p b: it was lost before, or has crashed when @p
 * b was lost, too. The launcher may see both at once, and a task that exits has most likely been
 * told of another one's end. */
static bool comes_first(const struct task *a, const struct task *b)
{
    bool crashed = a->sig != 0 && !cause_may_be_of_rm(a->sig);
    return a->at < b->at || (a->at == b->at && crashed && b->sig == 0);
}

const struct task *cause_first_lost(const struct server *server)
{
    const struct task *first = NULL;
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (task_is_lost(task) && !cause_is_follower(server, task) &&
            (first == NULL || comes_first(task, first)))
            first = task;
    }
    return first;
}
