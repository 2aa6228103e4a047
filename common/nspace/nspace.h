/** @file
 * The step's namespace: which rank is where. Immutable once made.
 */
#ifndef MUSTER_NSPACE_NSPACE_H
#define MUSTER_NSPACE_NSPACE_H

#include "common/server/boot.h"
#include "common/tracker/signature.h"

struct nspace {
    const struct boot *boot; /**< borrowed */
    uint32_t *node_of;       /**< rank → node index */
    uint32_t *local_of;      /**< rank → slot on its node */
};

/** @return the namespace of @p boot, or NULL when out of memory */
struct nspace *nspace_new(const struct boot *boot);

/** @return 0 and the node of a process, or -1 when there is no such process */
int nspace_node(const struct nspace *ns, const char *name, uint32_t rank, uint32_t *node);

/** The servers that host a signature's participants: the engine's `servers`. */
int nspace_servers(const struct nspace *ns, const struct signature *sig, uint32_t **nodes,
                   uint32_t *n);

/** Who of a signature's participants is on @p nodes: the engine's `missing`. */
void nspace_missing(const struct nspace *ns, const struct signature *sig, const uint32_t *nodes,
                    uint32_t n, char *buf, size_t cap);

void nspace_free(struct nspace *ns);

#endif
