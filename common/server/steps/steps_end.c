/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of other steps and of their servers, and what they hear of our own end.
 *
 * LEAVING: u8 1: the whole step of the sender has ended, 0: the sender leaves
 * said to all of the own step: str namespace of another step that has ended
 */
#include "common/holder/holder.h"
#include "common/nspace/foreign.h"
#include "common/server/spawned/streams.h"
#include "common/server/steps/seek.h"
#include "common/server/steps/sets.h"
#include "common/server/steps/steps.h"
#include "common/tracker/values/tree.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <string.h>

/* ---- the end of others ---- */

/* Says that a namespace has ended. All servers of the step know each namespace that libpmix knows
 * here, so all are told. */
static void tell_own(struct server *server, const struct nspace *ns)
{
    struct wire_out out = {0};
    if (ns->foreign->state != FOREIGN_REGISTERED)
        return;
    wire_put_u8(&out, FRAME_LEAVING);
    wire_put_str(&out, ns->foreign->name);
    server_say(server, &out);
}

void steps_tidy(struct server *server, uint32_t node)
{
    struct nspace *ns = nspace_of(server->nspace, node);
    holder_lost(server->holder, node);
    streams_server_gone(server, node);
    if (node < server->boot.nnodes)
        spread_lost(server);
    if (ns == NULL || ns->foreign == NULL || ns->boot == NULL || foreign_has_ended(ns))
        return;
    for (uint32_t i = 0; i < ns->nnodes; i++)
        if (!foreign_gone(ns, ns->base + i))
            return;
    if (view_head(server->view) == server->boot.node)
        tell_own(server, ns);
    if (ns->foreign->state == FOREIGN_REGISTERED)
        sets_delete(server, ns);
    server->hooks->nspace_ended(server, ns->foreign->name);
    steps_keep(server, ns);
    spread_forget(server, ns->foreign->name);
}

bool steps_lost(struct server *server, uint32_t node)
{
    struct nspace *ns = nspace_of(server->nspace, node);
    if (ns == NULL || ns->foreign == NULL)
        return true;
    if (foreign_gone(ns, node))
        return false;
    ns->foreign->gone[node - ns->base] = true;
    return true;
}

void steps_lose(struct server *server, uint32_t from)
{
    steps_lost(server, from);
    engine_lost(server->engine, from);
    asks_lost(server->asks, from);
    seek_server_lost(server, from);
    steps_tidy(server, from);
}

static void lose_step(struct server *server, const struct nspace *ns)
{
    for (uint32_t i = 0; i < ns->nnodes; i++)
        if (!foreign_gone(ns, ns->base + i))
            steps_lose(server, ns->base + i);
}

void steps_leaving(struct server *server, uint32_t from, const void *body, size_t len)
{
    const struct nspace *ns = nspace_of(server->nspace, from);
    struct wire_in in;
    wire_in_init(&in, body, len);
    bool all = wire_get_u8(&in) != 0;
    if (!wire_end(&in) || ns == NULL || ns->foreign == NULL) {
        log_warning("a malformed goodbye of %s was dropped", nspace_name(server->nspace, from));
        return;
    }
    log_debug("muster-server on %s leaves, for its step ends%s", nspace_name(server->nspace, from),
              all ? "; it is the last one" : "");
    if (all) {
        tell_own(server, ns); /* at once: we may leave before all of its servers count as lost */
        lose_step(server, ns);
    }
    steps_lose(server, from);
}

void steps_ended(struct server *server, uint32_t speaker, const void *body, size_t len)
{
    char name[PROCSET_NAME_MAX + 1];
    struct wire_in in;
    wire_in_init(&in, body, len);
    wire_get_str(&in, name, sizeof name);
    const struct nspace *ns = wire_end(&in) ? nspace_find(server->nspace, name) : NULL;
    if (ns == NULL || ns->foreign == NULL)
        return; /* it is forgotten already */
    log_debug("%s says that namespace %s has ended", nspace_name(server->nspace, speaker), name);
    lose_step(server, ns);
}

void steps_refuse(struct server *server, uint32_t from)
{
    steps_tell(server, server->nspace, from);
    steps_lose(server, from);
}

/* ---- our own end ---- */

void steps_hand_over(struct server *server, uint32_t node)
{
    for (struct nspace *ns = server->nspace->next; ns != NULL; ns = ns->next)
        if (ns->foreign->state == FOREIGN_LEARNT)
            steps_tell(server, ns, node);
}

static void say_leaving(struct server *server, uint32_t node, bool all)
{
    struct wire_out frame = {0};
    wire_put_u8(&frame, FRAME_LEAVING);
    wire_put_u8(&frame, all);
    steps_send(server, node, &frame, NULL);
}

void steps_leave(struct server *server)
{
    uint32_t handles = nspace_handles(server->nspace);
    for (uint32_t node = server->boot.nnodes; node < handles; node++) {
        const struct nspace *ns = nspace_of(server->nspace, node);
        struct link_counts c = link_counts(server->link, node);
        if (c.frames_in + c.frames_out > 0 && !foreign_gone(ns, node))
            say_leaving(server, node, false);
    }
}

/* One that we have had to do with has been there; the first one may be there for longer. */
static void end_for(struct server *server, const struct nspace *ns)
{
    uint32_t met = steps_server_there(server, ns, true),
             first = steps_server_there(server, ns, false);
    if (first != TREE_NONE)
        say_leaving(server, first, true);
    if (met != TREE_NONE && met != first)
        say_leaving(server, met, true);
}

void steps_end(struct server *server, bool last)
{
    if (server->rm == NULL || (!last && view_head(server->view) != server->boot.node))
        return;
    for (const struct nspace *ns = server->nspace->next; ns != NULL; ns = ns->next)
        if (ns->foreign->state != FOREIGN_FORGOTTEN)
            end_for(server, ns);
}
