/* SPDX-License-Identifier: BSD-3-Clause */
/* One callback for all group requests of one id, where libpmix has that: LIBRARY_GROUP_SHARES. */
#include "common/upcall/collective.h"

#include "common/server/tasks.h"
#include "common/util/log.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static bool is_shared(const struct collective *c)
{
    return coll_kind_is_group(c->kind) && library_has(c->server->library, LIBRARY_GROUP_SHARES);
}

/* Another request of the id that has answered, and libpmix may not have done so yet. */
static bool is_covered(const struct collective *c)
{
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o != c && o->pending == PENDING_ANSWERING && o->request.answer.given &&
            strcmp(o->id, c->id) == 0)
            return true;
    return false;
}

bool pending_add(struct collective *c)
{
    if (!is_shared(c) || c->pending != PENDING_NOT)
        return c->pending != PENDING_COVERED;
    if (is_covered(c)) {
        log_debug("upcall: group \"%s\": a request came while another one was answered", c->id);
        return false;
    }
    c->pending = PENDING_WAITS;
    c->next = c->server->groups;
    c->server->groups = c;
    return true;
}

void pending_remove(struct collective *c)
{
    struct collective **at = c->server != NULL ? &c->server->groups : NULL;
    while (at != NULL && *at != NULL && *at != c)
        at = &(*at)->next;
    if (at != NULL && *at == c)
        *at = c->next;
}

bool pending_answers(struct collective *c)
{
    if (c->pending == PENDING_NOT)
        return true;
    if (c->pending == PENDING_COVERED)
        return false;
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o != c && o->pending == PENDING_ANSWERING && strcmp(o->id, c->id) == 0)
            return false;
    c->pending = PENDING_ANSWERING;
    return true;
}

/* @thread the loop's */
static void forget(struct handoff_item *item)
{
    collective_free((struct collective *)item);
}

/* libpmix has answered all that was handed up for the id until now. @thread PMIx's */
static void on_answered(void *arg)
{
    struct collective *c = arg;
    upcall_post(&c->request, forget);
}

/* libpmix answers all requests of @p c's id but @p c itself, or has done so. */
static void cover(const struct collective *c)
{
    struct collective *next;
    for (struct collective *o = c->server->groups; o != NULL; o = next) {
        next = o->next;
        if (o == c || strcmp(o->id, c->id) != 0 || o->request.answer.given ||
            o->pending == PENDING_CANCELS)
            continue;
        o->pending = PENDING_COVERED;
        if (engine_withdraw(c->server->engine, &o->call))
            collective_free(o);
    }
}

bool pending_is_behind(const struct collective *c)
{
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o->pending == PENDING_CANCELS && strcmp(o->id, c->id) == 0)
            return true;
    return false;
}

/* A destruct that libpmix has ended here, as some of the group's members on this node were late.
 * The host is told the id alone, as of a construct; a group of that id is there before its
 * destruct, and not before its construct. @return whether there is one; its members here have
 * dropped it */
static bool cancels_destruct(const struct collective *c, bool lost)
{
    const struct registry *registry = c->server->registry;
    for (uint32_t i = 0; i < registry->n; i++) {
        const struct registry_entry *e = &registry->entries[i];
        struct procset members = {0};
        struct wire_out sig = {0};
        if (e->kind != REGISTRY_GROUP || strcmp(e->id, c->id) != 0)
            continue;
        signature_write(&sig, COLL_DESTRUCT, c->id, &e->members);
        if (!sig.failed && procset_unite(&members, &e->members) == 0) {
            registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &members);
            engine_cancel_known(c->server->engine, sig.data, sig.len, lost);
        }
        procset_free(&members);
        wire_out_free(&sig);
        return true;
    }
    return false;
}

/* libpmix notices a loss before the launcher says it: others are to get its status. */
void pending_cancelled(struct handoff_item *item)
{
    struct collective *c = (struct collective *)item;
    const struct procset nobody = {0};
    if (!c->held)
        cover(c);
    if (!c->held && !tasks_loss_is_told(c->server, &nobody)) {
        c->held = true;
        c->pending = PENDING_CANCELS;
        c->next = c->server->groups;
        c->server->groups = c;
        server_hold(c->server, item);
        return;
    }
    bool lost = tasks_just_lost(c->server);
    if (!cancels_destruct(c, lost))
        engine_cancel(c->server->engine, c->id, lost);
    answer_status(&c->request.answer, PMIX_SUCCESS);
    collective_free(c);
}

void pending_answer(struct collective *c, pmix_status_t status, pmix_info_t *info, size_t ninfo)
{
    if (c->pending == PENDING_COVERED) { /* while the members' data were stored */
        if (info != NULL)
            PMIX_INFO_FREE(info, ninfo);
        collective_free(c);
        return;
    }
    if (c->pending == PENDING_NOT) {
        answer_infos(&c->request.answer, status, info, ninfo);
        collective_free(c);
        return;
    }
    cover(c);
    answer_infos_then(&c->request.answer, status, info, ninfo, on_answered, c);
}
