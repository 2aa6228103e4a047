/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Namespaces: which rank is where. The own step's is immutable once made; behind it hang those of
 * other steps that have become known (foreign.h).
 *
 * Servers are handles (rm.h): a namespace has those from its base on, the own one from 0.
 * @thread the loop's
 */
#pragma once

#include "common/launch/boot.h"
#include "common/tracker/values/places.h"
#include "common/tracker/values/signature.h"

struct nspace {
    const struct boot *boot; /**< borrowed; another step's: its own, and NULL as long as no more
                                  than its size is known */
    uint32_t *node_of;       /**< rank → node index; NULL without boot */
    uint32_t *local_of;      /**< rank → slot on its node; the same */
    bool all_host;           /**< each of its servers has tasks */
    int *packages;         /**< slot on this node → package that it is bound to, as binding.c has
                                learned; NULL: nothing yet */
    uint32_t base, nnodes; /**< its servers' handles are base…base+nnodes-1 */
    struct nspace *next;   /**< another step's, in the order in which they became known */
    struct foreign *foreign; /**< foreign.c's; NULL for the own one */
    void *bytes; /**< its registration, as other servers are told it; NULL without boot */
    size_t len;
    bool *told; /**< handle → that server was told it; ntold of them */
    uint32_t ntold;
};

/** @return what frames call the step of that name and that run (boot::run) */
uint64_t nspace_hash(const char *name, uint64_t run);

/** @return the number after which context ids of the step of that name and that run begin, from
 * 2^62 to 2^63. Two steps that give a thousand ids each have one in common with a probability of
 * 1 to 10^15, times their number of nodes. */
uint64_t nspace_ids(const char *name, uint64_t run);

/** @return the namespace of @p boot */
struct nspace *nspace_new(const struct boot *boot);

/** Sets node_of and local_of by @p boot. */
void nspace_place(struct nspace *ns, const struct boot *boot);

/** @return whether a part of a set is all of @p ns, of which all is known */
bool nspace_is_whole(const struct nspace *ns, const struct procset_part *part);

/* All of these take the own namespace and look at the others, too. */

/** @return the namespace of that name of which all is known, or NULL */
const struct nspace *nspace_find(const struct nspace *own, const char *name);

/** @return the namespace that server @p node belongs to, or NULL */
struct nspace *nspace_of(struct nspace *own, uint32_t node);

/** @return 0 and the server of a process, or -1 when there is no such process */
int nspace_node(const struct nspace *own, const char *name, uint32_t rank, uint32_t *node);

/** The servers that host a signature's participants, by name of their namespace and then by node:
 * the engine's `servers`. */
int nspace_servers(const struct nspace *own, const struct signature *sig, struct places *places);

/** The processes of a set that server @p node hosts: the engine's `members_on`. */
int nspace_members_on(const struct nspace *own, const struct procset *set, uint32_t node,
                      struct procset *there);

/** Room for the ranks of one node in words; more ends in "...". */
enum { RANKS_TEXT = 128 };

/** Writes which of a signature's participants server @p node hosts: "0-4,9".
 * @return how many they are */
uint32_t nspace_ranks_on(const struct nspace *own, const struct signature *sig, uint32_t node,
                         char *buf, size_t cap);

/** Writes which of a signature's participants are on @p nodes: the engine's `ranks`. */
void nspace_ranks(const struct nspace *own, const struct signature *sig, const uint32_t *nodes,
                  uint32_t n, bool some, char *buf, size_t cap);

/** What messages call server @p node: the node's name; of another step "NAMESPACE/NODE".
 * @return borrowed, as long as the namespace stands */
const char *nspace_name(const struct nspace *own, uint32_t node);

/** @return the number of handles that are given away */
uint32_t nspace_handles(const struct nspace *own);

/** Frees the own namespace and all others. */
void nspace_free(struct nspace *own);
