/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that are connected, and how many pulls there were before each. */
#include "common/upcall/pullers.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct puller {
    struct puller *next;
    pmix_proc_t proc;
    uint64_t since; /* pulls that there had been when its first connection came */
    uint32_t connections;
};

static struct puller **find(struct pullers *all, const char *nspace, uint32_t rank)
{
    struct puller **at = &all->list;
    while (*at != NULL &&
           ((*at)->proc.rank != rank || strncmp((*at)->proc.nspace, nspace, PMIX_MAX_NSLEN) != 0))
        at = &(*at)->next;
    return at;
}

void pullers_pull(struct pullers *all)
{
    all->pulls++;
}

uint64_t pullers_now(const struct pullers *all)
{
    return all->pulls;
}

void pullers_came(struct pullers *all, const char *nspace, uint32_t rank, uint64_t since)
{
    struct puller *p = *find(all, nspace, rank);
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        PMIX_LOAD_PROCID(&p->proc, nspace, rank);
        p->since = since;
        p->next = all->list;
        all->list = p;
    }
    p->connections++;
}

bool pullers_gone(struct pullers *all, const char *nspace, uint32_t rank)
{
    struct puller **at = find(all, nspace, rank), *p = *at;
    if (p == NULL)
        return false;
    bool may = all->pulls > p->since;
    if (--p->connections == 0) {
        *at = p->next;
        free(p);
    }
    return may;
}

void pullers_free(struct pullers *all)
{
    while (all->list != NULL) {
        struct puller *p = all->list;
        all->list = p->next;
        free(p);
    }
}
