/* SPDX-License-Identifier: BSD-3-Clause */
/* The way from libpmix's thread to the loop, and back. */
#include "common/upcall/post.h"

#include "common/server/server.h"

#include <pmix_server.h>
#include <string.h>

/* libpmix gives an upcall no pointer of ours. Set before PMIx_server_init, cleared after
 * PMIx_server_finalize. */
static struct server *the_server;

void upcall_serve(struct server *server)
{
    the_server = server;
}

struct server *upcall_server(void)
{
    return the_server;
}

pmix_status_t upcall_post(struct handoff_item *item, handoff_run_fn *run)
{
    handoff_post(the_server->handoff, item, run);
    return PMIX_SUCCESS;
}

/* It calls back once it has deregistered a client, also one that does not exist. */
void upcall_call_there(pmix_op_cbfunc_t then, void *arg)
{
    pmix_proc_t nobody;
    PMIX_LOAD_PROCID(&nobody, "muster.nobody", 0);
    PMIx_server_deregister_client(&nobody, then, arg);
}

struct task *upcall_task(const pmix_proc_t *proc)
{
    struct server *server = upcall_server();
    const struct boot *boot = &server->boot;
    if (strcmp(proc->nspace, boot->nspace) != 0 || proc->rank >= boot->ntasks ||
        server->nspace->node_of[proc->rank] != boot->node)
        return NULL;
    return &server->tasks[server->nspace->local_of[proc->rank]];
}
