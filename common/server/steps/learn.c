/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces of other steps, as they are learnt. */
#include "common/nspace/foreign.h"
#include "common/server/steps/steps.h"
#include "common/util/log.h"

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
        steps_name_servers(server, ns, handles);
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
