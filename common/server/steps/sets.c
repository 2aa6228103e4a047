/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry says which sets are defined. */
#include "common/server/steps/sets.h"

#include "common/nspace/foreign.h"
#include "common/nspace/registry.h"
#include "common/util/log.h"

#include <pmix_common.h>
#include <string.h>

static const struct registry_entry *find(const struct server *server, const char *name)
{
    const struct registry *registry = server->registry;
    for (uint32_t i = 0; i < registry->n; i++)
        if (registry->entries[i].kind == REGISTRY_PSET &&
            strcmp(registry->entries[i].id, name) == 0)
            return &registry->entries[i];
    return NULL;
}

static int define(struct server *server, const struct psets *psets, struct err *err)
{
    for (uint32_t i = 0; i < psets->n; i++) {
        const struct pset *set = &psets->sets[i];
        if (find(server, set->name) != NULL) {
            log_info("process set \"%s\" of another %s has a name that is taken", set->name,
                     log_unit());
            continue;
        }
        if (register_set(set, server->library, err) != 0)
            return -1;
        registry_add(server->registry, REGISTRY_PSET, set->name, &set->members);
    }
    return 0;
}

int sets_open(struct server *server, struct err *err)
{
    names_init(&server->registered);
    return psets_read(&server->psets, &server->boot, err);
}

int sets_define(struct server *server, struct err *err)
{
    return define(server, &server->psets, err);
}

int32_t sets_add(struct server *server, const char *name, const struct procset *members)
{
    struct psets *psets = &server->psets;
    const struct pset *old = psets_find(psets, name, strlen(name));
    struct err err = {0};
    if (old != NULL)
        return procset_equal(&old->members, members) ? PMIX_SUCCESS : PMIX_ERR_EXISTS;
    if (find(server, name) != NULL)
        return PMIX_ERR_EXISTS; /* another step's */
    if (psets_add(psets, &server->boot, name, members, &err) == 0) {
        if (define(server, &(struct psets){1, &psets->sets[psets->n - 1]}, &err) == 0)
            return PMIX_SUCCESS;
        psets_take_back(psets);
    }
    log_error("%s", err.text);
    return psets->n >= PSETS_MAX ? PMIX_ERR_OUT_OF_RESOURCE : PMIX_ERROR;
}

/* They are the other step's word; when that makes no sense, it has none. */
static void read_foreign(struct psets *psets, const struct nspace *ns)
{
    struct err err = {0};
    if (psets_read(psets, ns->boot, &err) == 0)
        return;
    log_warning("namespace %s counts as one without process sets: %s", ns->boot->nspace, err.text);
    psets_free(psets);
}

int sets_register(struct server *server, const struct nspace *ns, struct registration **later,
                  struct err *err)
{
    struct psets psets;
    bool session = strcmp(ns->boot->session, server->boot.session) == 0;
    int rc = 0;
    read_foreign(&psets, ns);
    struct registration *r = register_prepare(ns, &psets, session);
    if (later == NULL)
        rc = register_keys(r, 0, err);
    else
        *later = r;
    if (rc == 0)
        names_add(&server->registered, ns->boot->nspace);
    if (rc == 0 && !foreign_has_ended(ns)) /* else its sets have ended, too */
        rc = define(server, &psets, err);
    psets_free(&psets);
    return rc;
}

void sets_delete(struct server *server, const struct nspace *ns)
{
    struct psets psets;
    read_foreign(&psets, ns);
    for (uint32_t i = 0; i < psets.n; i++) {
        const struct pset *set = &psets.sets[i];
        const struct registry_entry *e = find(server, set->name);
        if (e == NULL || !procset_equal(&e->members, &set->members))
            continue; /* another one of that name counts */
        register_set_end(set);
        registry_remove(server->registry, REGISTRY_PSET, set->name, &set->members);
    }
    psets_free(&psets);
}

void sets_end(struct server *server, const struct nspace *ns)
{
    names_remove(&server->registered, ns->boot->nspace);
    register_end(ns->boot->nspace);
}

void sets_close(struct server *server)
{
    psets_free(&server->psets);
    names_free(&server->registered);
}
