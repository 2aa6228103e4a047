/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of other steps of the same user, as handles that bytes can be sent to. Where a step
 * listens follows from its name and run; on which nodes, the scout has found out or the step's
 * registration says. Both are the user's own word about the user's own servers: slurmd connects as
 * the sender's uid, so bytes reach no socket of another user. */
#include "plugins/slurm/rm_slurm.h"

#include "common/util/text.h"
#include "plugins/slurm/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct other {
    struct other *next;
    uint32_t base, nnodes;
    char *nspace, *address;
    bool named; /* the peers have names */
    struct peer *peers;
};

/* @return the address of a step's servers, or NULL: its name is not one of ours */
static char *address_of(const struct rm *rm, const char *nspace, uint64_t run)
{
    char name[64], *address = NULL;
    uint32_t job, step;
    const char *slash = strrchr(rm->address, '/');
    if (slash == NULL || sscanf(nspace, "slurm.%u.%u", &job, &step) != 2)
        return NULL;
    snprintf(name, sizeof name, "slurm.%u.%u", job, step);
    if (strcmp(name, nspace) == 0)
        address = text_format("%.*s/" FACTS_SOCKET, (int)(slash - rm->address), rm->address, job,
                              step, run);
    return address;
}

static void free_other(struct other *other)
{
    for (uint32_t i = 0; i < other->nnodes; i++)
        free(other->peers[i].own_name);
    free(other->peers);
    free(other->nspace);
    free(other->address);
    free(other);
}

static struct other *find(const struct rm *rm, uint32_t base)
{
    struct other *other = rm->others;
    while (other != NULL && other->base != base)
        other = other->next;
    return other;
}

static struct other *make(struct rm *rm, const char *nspace, uint64_t run, uint32_t base,
                          uint32_t nnodes)
{
    struct other *other = calloc(1, sizeof *other);
    other->base = base;
    other->nnodes = nnodes;
    other->nspace = strdup(nspace);
    other->address = address_of(rm, nspace, run);
    other->peers = calloc(nnodes, sizeof *other->peers);
    for (uint32_t i = 0; i < nnodes; i++) {
        other->peers[i].address = other->address;
        other->peers[i].foreign = true;
    }
    return other;
}

static void name_peers(struct rm *rm, struct other *other, const struct boot_node *nodes)
{
    const struct place *place = rm->offered;
    if (nodes == NULL && (place == NULL || place->names == NULL || place->nnodes != other->nnodes ||
                          strcmp(place->nspace, other->nspace) != 0))
        return;
    for (uint32_t i = 0; i < other->nnodes && !other->named; i++) {
        other->peers[i].own_name = strdup(nodes != NULL ? nodes[i].name : place->names[i]);
        other->peers[i].name = other->peers[i].own_name;
    }
    other->named = true;
}

void others_attach(struct rm *rm, const char *nspace, uint64_t run, uint32_t base, uint32_t nnodes,
                   const struct boot_node *nodes)
{
    struct other *other = find(rm, base);
    bool again = other != NULL;
    if (!again)
        other = make(rm, nspace, run, base, nnodes);
    if (!again && (other == NULL || !outbox_add(rm, other->peers, base, nnodes))) {
        log_error("servers of namespace %s cannot be reached: out of memory", nspace);
        if (other != NULL)
            free_other(other);
        return;
    }
    if (!again) {
        other->next = rm->others;
        rm->others = other;
    }
    name_peers(rm, other, nodes);
}

void others_free(struct rm *rm)
{
    while (rm->others != NULL) {
        struct other *other = rm->others;
        rm->others = other->next;
        free_other(other);
    }
}
