/* SPDX-License-Identifier: BSD-3-Clause */
/* A debugger releases processes. */
#include "common/notify/release.h"

#include "common/server/status/stopped.h"

#include <string.h>

void release_note(struct server *server, const struct notification *event)
{
    const char *own = server->boot.nspace;
    if (event->range != PMIX_RANGE_CUSTOM) {
        if (event->range != PMIX_RANGE_NAMESPACE || strcmp(event->source.nspace, own) == 0)
            stopped_release(server, 0, PMIX_RANK_VALID);
        return;
    }
    for (size_t i = 0; i < event->ntargets; i++) {
        const pmix_proc_t *proc = &event->targets[i];
        if (strcmp(proc->nspace, own) != 0)
            continue;
        if (proc->rank <= PMIX_RANK_VALID)
            stopped_release(server, proc->rank, proc->rank);
        else /* PMIX_RANK_WILDCARD and its like */
            stopped_release(server, 0, PMIX_RANK_VALID);
    }
}
