/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lookups in the namespaces that this server knows: where a rank is, which servers take part in an
 * operation, and which ranks are missing from it, in words.
 */
#include "common/nspace/foreign.h"
#include "common/util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t nspace_hash(const char *name, uint64_t run)
{
    unsigned char bytes[PROCSET_NAME_MAX + sizeof run];
    size_t len = strnlen(name, PROCSET_NAME_MAX);
    memcpy(bytes, name, len);
    for (; run != 0; run >>= 8) /* a name has no NUL, and so no run takes part in it unseen */
        bytes[len++] = (unsigned char)run;
    return signature_hash(bytes, len);
}

/* The hash of names that differ in a byte or two lies on few lines; multiplied and shifted
 * (SplitMix64), each of its bits changes half of the bits. */
uint64_t nspace_ids(const char *name, uint64_t run)
{
    uint64_t h = nspace_hash(name, run);
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    h ^= h >> 31;
    return UINT64_C(1) << 62 | h >> 2;
}

void nspace_place(struct nspace *ns, const struct boot *boot)
{
    ns->node_of = calloc(boot->ntasks + 1, sizeof *ns->node_of);
    ns->local_of = calloc(boot->ntasks + 1, sizeof *ns->local_of);
    ns->all_host = true;
    for (uint32_t i = 0; i < boot->nnodes; i++)
        ns->all_host = ns->all_host && boot->nodes[i].ntasks > 0;
    for (uint32_t i = 0; i < boot->nnodes; i++)
        for (uint32_t k = 0; k < boot->nodes[i].ntasks; k++) {
            ns->node_of[boot->nodes[i].ranks[k]] = i;
            ns->local_of[boot->nodes[i].ranks[k]] = k;
        }
}

struct nspace *nspace_new(const struct boot *boot)
{
    struct nspace *ns = calloc(1, sizeof *ns);
    ns->boot = boot;
    ns->nnodes = boot->nnodes;
    nspace_place(ns, boot);
    return ns;
}

const struct nspace *nspace_find(const struct nspace *own, const char *name)
{
    const struct nspace *ns = own;
    while (ns != NULL && (ns->boot == NULL || strcmp(ns->boot->nspace, name) != 0))
        ns = ns->next;
    return ns;
}

static const struct nspace *owner(const struct nspace *own, uint32_t node)
{
    const struct nspace *ns = own;
    while (ns != NULL && node - ns->base >= ns->nnodes)
        ns = ns->next;
    return ns;
}

struct nspace *nspace_of(struct nspace *own, uint32_t node)
{
    return (struct nspace *)owner(own, node);
}

int nspace_node(const struct nspace *own, const char *name, uint32_t rank, uint32_t *node)
{
    const struct nspace *ns = nspace_find(own, name);
    if (ns == NULL || rank >= ns->boot->ntasks)
        return -1;
    *node = ns->base + ns->node_of[rank];
    return 0;
}

bool nspace_is_whole(const struct nspace *ns, const struct procset_part *part)
{
    return part->ranks.n == 1 && part->ranks.v[0].first == 0 &&
           part->ranks.v[0].last == ns->boot->ntasks - 1;
}

/* Appends the servers of one namespace's participants. */
static int add_servers(const struct nspace *ns, const struct procset_part *part,
                       struct places *places)
{
    if (ns->all_host && nspace_is_whole(ns, part))
        return places_add(places, ns->base, ns->nnodes);
    bool *here = calloc(ns->nnodes, sizeof *here);
    int rc = 0;
    for (uint32_t j = 0; rc == 0 && j < part->ranks.n; j++) {
        if (part->ranks.v[j].last >= ns->boot->ntasks)
            rc = -1;
        for (uint32_t r = part->ranks.v[j].first; rc == 0 && r <= part->ranks.v[j].last; r++)
            here[ns->node_of[r]] = true;
    }
    for (uint32_t i = 0; rc == 0 && i < ns->nnodes; i++)
        if (here[i])
            rc = places_add(places, ns->base + i, 1);
    free(here);
    return rc;
}

int nspace_servers(const struct nspace *own, const struct signature *sig, struct places *places)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < sig->members.nparts; i++) {
        const struct procset_part *part = &sig->members.parts[i];
        const struct nspace *ns = nspace_find(own, part->nspace);
        rc = ns == NULL ? -1 : add_servers(ns, part, places);
    }
    return rc;
}

int nspace_members_on(const struct nspace *own, const struct procset *set, uint32_t node,
                      struct procset *there)
{
    const struct nspace *ns = owner(own, node);
    int rc = 0;
    if (ns == NULL || ns->boot == NULL)
        return 0;
    const struct boot_node *host = &ns->boot->nodes[node - ns->base];
    for (uint32_t k = 0; rc == 0 && k < host->ntasks; k++)
        if (procset_has(set, ns->boot->nspace, host->ranks[k]))
            rc = procset_add(there, ns->boot->nspace, host->ranks[k], host->ranks[k]);
    procset_canonical(there);
    return rc;
}

uint32_t nspace_ranks_on(const struct nspace *own, const struct signature *sig, uint32_t node,
                         char *buf, size_t cap)
{
    const struct nspace *ns = owner(own, node);
    struct ranges ranks = {0};
    if (ns != NULL && ns->boot != NULL) {
        const struct boot_node *host = &ns->boot->nodes[node - ns->base];
        for (uint32_t k = 0; k < host->ntasks; k++)
            if (procset_has(&sig->members, ns->boot->nspace, host->ranks[k]))
                ranges_put(&ranks, host->ranks[k]);
    }
    uint32_t n = (uint32_t)ranges_count(&ranks);
    ranges_text(&ranks, buf, cap);
    ranges_free(&ranks);
    return n;
}

void nspace_ranks(const struct nspace *own, const struct signature *sig, const uint32_t *nodes,
                  uint32_t n, bool some, char *buf, size_t cap)
{
    if (cap == 0)
        return;
    buf[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        char ranks[RANKS_TEXT];
        uint32_t there = nspace_ranks_on(own, sig, nodes[i], ranks, sizeof ranks);
        if (there == 0)
            continue;
        text_fit(buf, cap, buf[0] != '\0' ? ", " : "");
        text_fit(buf, cap, there == 1 ? "rank " : some ? "one or more of ranks " : "ranks ");
        text_fit(buf, cap, ranks);
        text_fit(buf, cap, " on ");
        text_fit(buf, cap, nspace_name(own, nodes[i]));
    }
}

const char *nspace_name(const struct nspace *own, uint32_t node)
{
    const struct nspace *ns = owner(own, node);
    if (ns == NULL)
        return "an unknown server";
    return ns->foreign != NULL ? ns->foreign->names[node - ns->base] : ns->boot->nodes[node].name;
}

uint32_t nspace_handles(const struct nspace *own)
{
    const struct nspace *ns = own;
    while (ns->next != NULL)
        ns = ns->next;
    return ns->base + ns->nnodes;
}

void nspace_free(struct nspace *own)
{
    if (own == NULL)
        return;
    free(own->node_of);
    free(own->local_of);
    free(own->packages);
    free(own->bytes);
    free(own->told);
    free(own);
}
