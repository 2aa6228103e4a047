/* SPDX-License-Identifier: BSD-3-Clause */
/* What servers of other steps are told of namespaces, and who tells them. */
#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"

#include <string.h>

uint32_t steps_speaker(void *arg, const struct procset *set)
{
    const struct server *server = arg;
    uint32_t first = server->boot.nnodes, node;
    for (struct procset_at at = {0}; procset_next(set, &at);)
        if (strcmp(at.nspace, server->boot.nspace) == 0 &&
            nspace_node(server->nspace, at.nspace, at.rank, &node) == 0 && node < first &&
            !engine_is_lost(server->engine, node))
            first = node;
    return first;
}

void steps_tell(struct server *server, struct nspace *ns, uint32_t node)
{
    struct wire_out out = {0};
    if (ns->bytes == NULL || foreign_has_ended(ns) || !foreign_tell(ns, node))
        return; /* of the end of one that has ended, no server would hear again */
    log_debug("transport: %s is told of namespace %s", nspace_name(server->nspace, node),
              ns->boot->nspace);
    wire_put_u8(&out, FRAME_NSPACE);
    wire_put_raw(&out, ns->bytes, ns->len);
    link_send(server->link, node, &out);
}

void steps_send(struct server *server, uint32_t node, struct wire_out *frame,
                struct shared_bytes *body)
{
    steps_tell(server, server->nspace, node);
    link_send_shared(server->link, node, frame, body);
}

void steps_acquaint(void *arg, uint32_t node, const struct procset *set)
{
    struct server *server = arg;
    if (node == server->boot.node)
        return;
    steps_tell(server, server->nspace, node);
    for (uint32_t i = 0; i < set->nparts; i++) {
        struct nspace *ns = (struct nspace *)nspace_find(server->nspace, set->parts[i].nspace);
        if (ns != NULL)
            steps_tell(server, ns, node);
    }
}
