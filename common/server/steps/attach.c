/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of servers of other steps, and the back end that is to know them. */
#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"

void steps_name_servers(struct server *server, struct nspace *ns, uint32_t handles)
{
    struct foreign *f = ns->foreign;
    bool places = ns->boot != NULL && !f->placed;
    if (ns->base != handles && !places)
        return;
    f->placed = places;
    server->rm_ops->attach(server->rm, f->name, f->run, ns->base, ns->nnodes,
                           places ? ns->boot->nodes : NULL);
}

struct nspace *steps_attach(struct server *server, const struct rm_server *found, struct err *err)
{
    uint32_t handles = nspace_handles(server->nspace);
    steps_replace(server, found->nspace, found->run);
    struct nspace *ns =
        foreign_attach(server->nspace, found->nspace, found->run, found->nnodes, err);
    if (ns != NULL)
        steps_name_servers(server, ns, handles);
    return ns;
}
