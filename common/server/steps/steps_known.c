/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long the namespace of another step is known, here and to libpmix: from the first operation
 * that needs its processes until it is forgotten.
 *
 * It is not forgotten with its last server. The result of an operation comes from another server
 * than the goodbyes of those that had part in it, and may come later. And a process may ask for
 * what is known of a step that it has spawned when that step has ended. So the namespace is kept
 * for STEPS_KEEP_MS, and while a group has members there, because libpmix needs it for the group's
 * destruct. At most STEPS_KEEP_MAX are kept without a group.
 */
#include "common/nspace/foreign.h"
#include "common/server/steps/sets.h"
#include "common/server/steps/steps.h"
#include "common/tracker/values/tree.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <string.h>

/* ---- it becomes known to libpmix ---- */

uint32_t steps_server_there(const struct server *server, const struct nspace *ns, bool met)
{
    for (uint32_t node = ns->base; node < ns->base + ns->nnodes; node++) {
        struct link_counts c = link_counts(server->link, node);
        if (!foreign_gone(ns, node) && (!met || c.frames_in + c.frames_out > 0))
            return node;
    }
    return TREE_NONE;
}

void steps_be_known(struct server *server, const struct nspace *ns)
{
    if (view_head(server->view) != server->boot.node ||
        steps_server_there(server, ns, true) != TREE_NONE)
        return;
    uint32_t node = steps_server_there(server, ns, false);
    if (node != TREE_NONE)
        steps_tell(server, server->nspace, node);
}

/* @param later as in sets_register() */
static int register_one(struct server *server, const char *name, struct registration **later)
{
    struct nspace *ns = (struct nspace *)nspace_find(server->nspace, name);
    struct err err = {0};
    if (ns != NULL && (ns->foreign == NULL || ns->foreign->state >= FOREIGN_REGISTERED))
        return 0;
    int rc = ns != NULL ? sets_register(server, ns, later, &err)
                        : err_set(&err, "namespace %s is not known", name);
    if (rc != 0) {
        log_error("an operation with processes of another %s: %s", log_unit(), err.text);
        return rc;
    }
    foreign_move(ns, FOREIGN_REGISTER);
    steps_be_known(server, ns);
    return 0;
}

int steps_register(struct server *server, const struct procset *set)
{
    int rc = 0;
    for (uint32_t i = 0; i < set->nparts && rc == 0; i++)
        rc = register_one(server, set->parts[i].nspace, NULL);
    return rc;
}

struct registration *steps_registration(struct server *server, const char *name)
{
    struct registration *r = NULL;
    if (nspace_find(server->nspace, name) != NULL) /* else it has ended */
        register_one(server, name, &r);
    return r;
}

/* ---- it is kept, and forgotten ---- */

static bool is_kept(const struct nspace *ns)
{
    return ns->foreign->state == FOREIGN_LEFT || ns->foreign->state == FOREIGN_OVER;
}

static bool has_group(const struct server *server, const struct nspace *ns)
{
    const struct registry *registry = server->registry;
    for (uint32_t i = 0; i < registry->n; i++)
        for (uint32_t k = 0; k < registry->entries[i].members.nparts; k++)
            if (registry->entries[i].kind == REGISTRY_GROUP &&
                strcmp(registry->entries[i].members.parts[k].nspace, ns->foreign->name) == 0)
                return true;
    return false;
}

static void forget(struct server *server, struct nspace *ns)
{
    log_debug("namespace %s is forgotten", ns->foreign->name);
    engine_nspace_ended(server->engine, ns->foreign->name);
    registry_forget(server->registry, ns->foreign->name);
    if (ns->foreign->state != FOREIGN_LEFT)
        sets_end(server, ns);
    foreign_forget(ns);
}

static void release(struct server *server, struct nspace *ns)
{
    if (ns->foreign->state != FOREIGN_LEFT && has_group(server, ns))
        foreign_move(ns, FOREIGN_HOLD);
    else
        forget(server, ns);
}

/* @param n how many are kept @return the one that is released first, or NULL */
static struct nspace *first_kept(const struct server *server, uint32_t *n)
{
    struct nspace *first = NULL;
    *n = 0;
    for (struct nspace *ns = server->nspace->next; ns != NULL; ns = ns->next)
        if (is_kept(ns)) {
            ++*n;
            if (first == NULL || ns->foreign->until < first->foreign->until)
                first = ns;
        }
    return first;
}

static void on_kept(void *arg, struct timer *timer)
{
    struct server *server = arg;
    int64_t now = timers_now(&server->timers);
    struct nspace *first;
    uint32_t n;
    while ((first = first_kept(server, &n)) != NULL && first->foreign->until <= now)
        release(server, first);
    timer_at(timer, first != NULL ? first->foreign->until : 0);
}

void steps_keep(struct server *server, struct nspace *ns)
{
    uint32_t n;
    log_debug("namespace %s has ended", ns->foreign->name);
    foreign_move(ns, FOREIGN_END);
    ns->foreign->until = timers_now(&server->timers) + STEPS_KEEP_MS;
    struct nspace *first = first_kept(server, &n);
    if (n > STEPS_KEEP_MAX)
        release(server, first);
    if (!timer_runs(&server->kept)) {
        timer_init(&server->kept, &server->timers, on_kept, server);
        timer_at(&server->kept, ns->foreign->until);
    }
}

void steps_group_ended(struct server *server)
{
    for (struct nspace *ns = server->nspace->next; ns != NULL; ns = ns->next)
        if (ns->foreign->state == FOREIGN_HELD && !has_group(server, ns))
            forget(server, ns);
}

void steps_replace(struct server *server, const char *name, uint64_t run)
{
    struct nspace *ns = (struct nspace *)nspace_find(server->nspace, name);
    if (ns == NULL || !foreign_has_ended(ns) || ns->foreign->run == run)
        return;
    log_debug("namespace %s is of another run of its step now", name);
    forget(server, ns);
}

bool steps_has_ended(const struct server *server, const char *name)
{
    const struct nspace *ns = nspace_find(server->nspace, name);
    return ns == NULL || foreign_has_ended(ns);
}
