/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a request, and one callback for all group requests of one id, where libpmix has that:
 * LIBRARY_GROUP_SHARES. */
#include "common/upcall/collective.h"

#include "common/server/steps/steps.h"
#include "common/server/tasks/tasks.h"
#include "common/util/log.h"
#include "common/util/states.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[COLLECTIVE_STATES] = {
    "new", "cancels", "seeks", "held", "called", "covered", "ends", "answered"};
static const char *const event_names[COLLECTIVE_EVENTS] = {"cancel", "seek",   "hold",  "call",
                                                           "cover",  "result", "answer"};

/* Short, for the table. */
enum {
    NONE = STATES_NONE,
    CANCELS = COLLECTIVE_CANCELS,
    SEEKS = COLLECTIVE_SEEKS,
    HELD = COLLECTIVE_HELD,
    CALLED = COLLECTIVE_CALLED,
    COVERED = COLLECTIVE_COVERED,
    ENDS = COLLECTIVE_ENDS,
    ANSWERED = COLLECTIVE_ANSWERED,
};

/* clang-format off */
static const int table[COLLECTIVE_STATES][COLLECTIVE_EVENTS] = {
    /*                       CANCEL   SEEK   HOLD  CALL    COVER    RESULT ANSWER */
    [COLLECTIVE_NEW]      = {CANCELS, SEEKS, HELD, CALLED, NONE,    ENDS, NONE},
    [COLLECTIVE_CANCELS]  = {NONE,    NONE,  NONE, NONE,   NONE,    NONE, NONE},
    [COLLECTIVE_SEEKS]    = {NONE,    NONE,  HELD, CALLED, NONE,    ENDS, NONE},
    [COLLECTIVE_HELD]     = {NONE,    NONE,  NONE, CALLED, COVERED, NONE, NONE},
    [COLLECTIVE_CALLED]   = {NONE,    NONE,  NONE, NONE,   COVERED, ENDS, NONE},
    [COLLECTIVE_COVERED]  = {NONE,    NONE,  NONE, NONE,   COVERED, NONE, NONE},
    [COLLECTIVE_ENDS]     = {NONE,    NONE,  NONE, NONE,   COVERED, NONE, ANSWERED},
    [COLLECTIVE_ANSWERED] = {NONE,    NONE,  NONE, NONE,   NONE,    NONE, NONE},
};
/* clang-format on */

static const struct states life = {state_names, event_names, &table[0][0], COLLECTIVE_EVENTS};

void collective_move(struct collective *c, enum collective_event event)
{
    int to = states_next(&life, (int)c->state, (int)event, "upcall: %s \"%s\"",
                         coll_traits(c->kind)->name, c->id);
    if (to != STATES_NONE)
        c->state = (enum collective_state)to;
}

static bool is_shared(const struct collective *c)
{
    return coll_traits(c->kind)->is_group && library_has(c->server->library, LIBRARY_GROUP_SHARES);
}

/* Another request of the id that has answered, and libpmix may not have done so yet. */
static bool is_covered(const struct collective *c)
{
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o != c && o->state == COLLECTIVE_ANSWERED && strcmp(o->id, c->id) == 0)
            return true;
    return false;
}

static void list(struct collective *c)
{
    c->next = c->server->groups;
    c->server->groups = c;
}

bool pending_add(struct collective *c)
{
    if (!is_shared(c) || c->state >= COLLECTIVE_HELD)
        return c->state != COLLECTIVE_COVERED;
    if (is_covered(c)) {
        log_debug("upcall: group \"%s\": a request came while another one was answered", c->id);
        return false;
    }
    list(c);
    return true;
}

bool pending_answers(struct collective *c)
{
    if (c->state == COLLECTIVE_COVERED)
        return false;
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o != c && o->state >= COLLECTIVE_ENDS && strcmp(o->id, c->id) == 0)
            return false;
    collective_move(c, COLLECTIVE_RESULT);
    return true;
}

/* @thread the loop's */
static void forget(struct handoff_item *item)
{
    collective_free((struct collective *)item);
}

/* libpmix has answered all that was handed up for the id until now. What it hands up next is posted
 * behind this. @thread PMIx's */
static void on_answered(void *arg)
{
    struct collective *c = arg;
    handoff_post_behind(c->server->handoff, &c->request.item, forget);
}

/* libpmix answers all requests of @p c's id but @p c itself, or has done so. */
static void cover(const struct collective *c)
{
    struct collective *next;
    for (struct collective *o = c->server->groups; o != NULL; o = next) {
        next = o->next;
        if (o == c || strcmp(o->id, c->id) != 0 || o->state == COLLECTIVE_ANSWERED ||
            o->state == COLLECTIVE_CANCELS)
            continue;
        collective_move(o, COLLECTIVE_COVER);
        if (engine_withdraw(c->server->engine, &o->call))
            collective_free(o);
    }
}

bool pending_is_behind(const struct collective *c)
{
    for (const struct collective *o = c->server->groups; o != NULL; o = o->next)
        if (o->state == COLLECTIVE_CANCELS && strcmp(o->id, c->id) == 0)
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
        procset_unite(&members, &e->members);
        registry_remove(c->server->registry, REGISTRY_GROUP, c->id, &members);
        engine_cancel_known(c->server->engine, sig.data, sig.len, lost);
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
    bool held = c->state == COLLECTIVE_CANCELS;
    if (!held)
        cover(c);
    if (!held && !tasks_loss_is_told(c->server, &nobody)) {
        collective_move(c, COLLECTIVE_CANCEL);
        list(c);
        server_hold(c->server, item);
        return;
    }
    bool lost = tasks_just_lost(c->server);
    if (!cancels_destruct(c, lost))
        engine_cancel(c->server->engine, c->id, lost);
    answer_status(&c->request.answer, PMIX_SUCCESS);
    steps_group_ended(c->server);
    collective_free(c);
}

void pending_answer(struct collective *c, pmix_status_t status, pmix_info_t *info, size_t ninfo)
{
    if (c->state == COLLECTIVE_COVERED) { /* while the members' data were stored */
        if (info != NULL)
            PMIX_INFO_FREE(info, ninfo);
        collective_free(c);
        return;
    }
    if (!is_shared(c)) {
        answer_infos(&c->request.answer, status, info, ninfo);
        collective_free(c);
        return;
    }
    cover(c);
    collective_move(c, COLLECTIVE_ANSWER);
    answer_infos_then(&c->request.answer, status, info, ninfo, on_answered, c);
}
