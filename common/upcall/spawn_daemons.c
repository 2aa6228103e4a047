/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Spawn: a debugger's daemons (PMIX_DEBUGGER_DAEMONS), which are on the nodes of the processes
 * that are debugged (PMIX_DEBUG_TARGET), and use no processor of the job's. Where these processes
 * are, the loop knows, or another step's servers. So the plan, which has been made by then, gets
 * the number of daemons afterwards.
 * @thread all of it: the loop's
 */
#include "common/server/steps/steps.h"
#include "common/upcall/spawn.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_AT_TASKS = 3 /* the number of processes of the first application */ };

void spawn_seek(struct spawn *s, void (*done)(struct seek_wait *wait))
{
    struct server *server = s->server;
    const struct boot_node *here = boot_here(&server->boot);
    s->seek = (struct seek_wait){.set = &s->sought, .done = done};
    if (nspace_find(server->nspace, s->debuggee.nspace) != NULL || here->ntasks == 0) {
        done(&s->seek);
        return;
    }
    /* A task of this node is in the set, so this server looks for the namespace. */
    procset_add(&s->sought, s->debuggee.nspace, 0, 0);
    procset_add(&s->sought, server->boot.nspace, here->ranks[0], here->ranks[0]);
    procset_canonical(&s->sought);
    seek_begin(server, &s->seek, SEEK_WAIT_MS);
}

/* @return how many daemons are for node @p node of the namespace */
static uint32_t daemons_on(const struct spawn *s, const struct nspace *ns, uint32_t node)
{
    uint32_t tasks = ns->boot->nodes[node].ntasks, rank = s->debuggee.rank;
    if (rank < ns->boot->ntasks)
        tasks = ns->node_of[rank] == node;
    if (tasks == 0)
        return 0;
    return s->daemons_per_proc > 0   ? s->daemons_per_proc * tasks
           : s->daemons_per_node > 0 ? s->daemons_per_node
                                     : 1;
}

/* Appends the name of the node of each daemon. @return how many there are */
static uint32_t place(const struct spawn *s, const struct nspace *ns, struct wire_out *hosts)
{
    uint32_t n = 0;
    for (uint32_t node = 0; node < ns->boot->nnodes; node++) {
        const char *name = ns->boot->nodes[node].name;
        for (uint32_t k = daemons_on(s, ns, node); k > 0 && n < RM_INPUT_ALL; k--, n++) {
            if (n > 0)
                wire_put_u8(hosts, ',');
            wire_put_raw(hosts, name, strlen(name));
        }
    }
    wire_put_u8(hosts, 0);
    return n;
}

void spawn_daemons(struct spawn *s)
{
    const struct nspace *ns = nspace_find(s->server->nspace, s->debuggee.nspace);
    struct wire_out hosts = {0};
    char count[16];
    if (ns == NULL || ns->boot == NULL) {
        spawn_refuse(s, PMIX_ERR_NOT_FOUND,
                     "its daemons are for the processes of %.100s, which is not there",
                     s->debuggee.nspace);
        return;
    }
    uint32_t n = place(s, ns, &hosts);
    free(s->hosts);
    s->hosts = (char *)wire_out_take(&hosts, &(size_t){0});
    free(s->apps);
    snprintf(count, sizeof count, "%u", n);
    s->apps = strdup(count);
    plan_set_number(&s->plan, PLAN_AT_TASKS, n);
    if (n == 0)
        spawn_refuse(s, PMIX_ERR_BAD_PARAM, "there is no rank %u in %.100s for its daemons",
                     s->debuggee.rank, s->debuggee.nspace);
    s->what.ntasks = n;
    s->what.hosts = s->hosts;
    s->what.apps = s->apps;
    s->what.map = RM_MAP_ANY;
    s->what.per_node = 0;
    s->what.bind = RM_BIND_NONE;
    s->what.daemons = s->what.overcommit = true;
}
