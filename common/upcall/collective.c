/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective request. */
#include "common/upcall/collective.h"

#include <stdlib.h>
#include <string.h>

struct collective *collective_new(enum coll_kind kind, const char *id, const pmix_proc_t procs[],
                                  size_t nprocs)
{
    struct collective *c = calloc(1, sizeof *c);
    c->server = upcall_server();
    c->kind = kind;
    c->nprocs = nprocs;
    c->procs = malloc(nprocs * sizeof *procs + 1);
    c->id = strdup(id);
    if (nprocs > 0)
        memcpy(c->procs, procs, nprocs * sizeof *procs);
    return c;
}

/* Takes it out of the list of group requests. */
static void unlist(struct collective *c)
{
    struct collective **at = &c->server->groups;
    while (*at != NULL && *at != c)
        at = &(*at)->next;
    if (*at == c)
        *at = c->next;
}

void collective_free(struct collective *c)
{
    unlist(c);
    procset_free(&c->all);
    procset_free(&c->members);
    procset_free(&c->expanded);
    procset_free(&c->gone);
    procset_free(&c->sought);
    procset_free(&c->procs_of_caller);
    proclist_free(&c->order);
    free((void *)c->call.added);
    free(c->added);
    free(c->call.sig);
    free(c->payload);
    free(c->procs);
    free(c->id);
    free(c);
}

int collective_add_proc(struct server *server, struct procset *set, const pmix_proc_t *proc)
{
    const struct boot *boot = &server->boot;
    const struct boot_node *here = boot_here(boot);
    int rc = 0;
    const struct nspace *ns = nspace_find(server->nspace, proc->nspace);
    if (book_expand(&server->book, set, proc->nspace, proc->rank, proc->rank == PMIX_RANK_WILDCARD,
                    &rc))
        return rc;
    rc = 0;
    if (proc->rank == PMIX_RANK_WILDCARD && ns != NULL)
        return procset_add(set, proc->nspace, 0, ns->boot->ntasks - 1);
    if (proc->rank != PMIX_RANK_LOCAL_PEERS && proc->rank != PMIX_RANK_LOCAL_NODE)
        return procset_add(set, proc->nspace, proc->rank, proc->rank);
    for (uint32_t k = 0; k < here->ntasks && rc == 0; k++)
        rc = procset_add(set, boot->nspace, here->ranks[k], here->ranks[k]);
    return rc;
}

int collective_expand(struct collective *c)
{
    int rc = 0;
    for (size_t i = 0; i < c->nprocs && rc == 0; i++)
        rc = collective_add_proc(c->server, &c->all, &c->procs[i]);
    procset_canonical(&c->all);
    procset_unite(&c->members, &c->all);
    return rc;
}
