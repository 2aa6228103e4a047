/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces of other steps, as they are named or learnt. */
#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"

/* Makes handles of a namespace known to the back end, and where its servers are once that is known.
 * @param handles how many there were before */
static void attach(struct server *server, struct nspace *ns, uint32_t handles)
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
        attach(server, ns, handles);
    return ns;
}

struct nspace *steps_take(struct server *server, uint64_t step, const void *body, size_t len)
{
    struct boot boot;
    struct err err = {0};
    struct nspace *ns = NULL;
    uint32_t handles = nspace_handles(server->nspace);
    if (boot_read_nspace(&boot, body, len, &err) == 0) {
        steps_replace(server, boot.nspace, boot.run);
        ns = foreign_learn(server->nspace, step, &boot, body, len, &err);
    }
    boot_free(&boot);
    if (ns == NULL)
        log_error("a registration of another %s was refused: %s", log_unit(), err.text);
    else
        attach(server, ns, handles);
    if (ns != NULL && ns->boot != NULL)
        seek_learnt(server);
    return ns;
}

const char *steps_learn(struct server *server, const void *registration, size_t len)
{
    const struct nspace *ns = steps_take(server, 0, registration, len);
    return ns != NULL ? ns->foreign->name : NULL;
}

bool steps_introduce(void *arg, uint64_t step, const void *body, size_t len)
{
    return steps_take(arg, step, body, len) != NULL;
}
