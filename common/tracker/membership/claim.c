/* SPDX-License-Identifier: BSD-3-Clause */
/* A claim: members of this server that an operation awaits. Its states, and which calls it may
 * take.
 *
 * A call whose process is not known by name (libpmix does not always say) stands for any added
 * member of this server.
 */
#include "common/tracker/membership/private.h"

#include "common/util/states.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[CLAIM_STATES] = {"open", "told", "doubt", "over"};
static const char *const event_names[CLAIM_EVENTS] = {"tell", "loss", "done"};

static const int table[CLAIM_STATES][CLAIM_EVENTS] = {
    /*               TELL         LOSS         DONE */
    [CLAIM_OPEN] = {CLAIM_TOLD, CLAIM_DOUBT, CLAIM_OVER},
    [CLAIM_TOLD] = {STATES_NONE, CLAIM_DOUBT, CLAIM_OVER},
    [CLAIM_DOUBT] = {STATES_NONE, CLAIM_DOUBT, CLAIM_OVER},
    [CLAIM_OVER] = {STATES_NONE, STATES_NONE, STATES_NONE},
};

static const struct states life = {state_names, event_names, &table[0][0], CLAIM_EVENTS};

bool claim_move(struct claim *claim, enum claim_event event)
{
    int to = states_next(&life, claim->state, event, "tracker: claim of group \"%s\"", claim->id);
    if (to != STATES_NONE)
        claim->state = (enum claim_state)to;
    return to != STATES_NONE;
}

bool waiting_is_named(const struct waiting *w)
{
    return w->call->caller->nparts > 0;
}

struct claim *claim_find(struct engine *engine, uint32_t decider, uint64_t op)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->membership->claims, all)
        if (claim->decider == decider && claim->op == op)
            return claim;
    return NULL;
}

/* A caller that is not known by name may be any member that the claim awaits. */
bool claim_wants(const struct claim *claim, const char *id, const struct procset *caller)
{
    return strcmp(claim->id, id) == 0 &&
           (caller->nparts == 0 || procset_has_first(&claim->members, caller));
}

/* Whether the server that decides is asked whether it is still there, or, when the decider is lost,
 * others are asked for the outcome. */
static bool asks(const struct engine *engine, const struct claim *claim)
{
    return claim->state == CLAIM_DOUBT ||
           (claim->state == CLAIM_TOLD && claim->decider != engine->env.self);
}

uint64_t claim_due_at(const struct engine *engine, const struct claim *claim)
{
    uint64_t end =
        claim->at + (claim->state == CLAIM_OVER ? ENGINE_STRAGGLER_MS : ENGINE_REMEMBER_MS);
    return asks(engine, claim) && claim->ask < end ? claim->ask : end;
}

void claim_due(struct engine *engine, struct claim *claim)
{
    timer_sooner(&claim->due, (int64_t)claim_due_at(engine, claim));
}

void claim_release(struct engine *engine, struct waiting *w, struct engine_call **ended)
{
    TAILQ_REMOVE(&engine->membership->joins, w, all);
    timer_stop(&w->due);
    calls_add(ended, w->call);
    free(w);
}

void claim_unfill(struct engine *engine, const struct claim *claim)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (w->claim == claim)
            w->claim = NULL;
}

void claim_free(struct engine *engine, struct claim *claim)
{
    claim_unfill(engine, claim);
    TAILQ_REMOVE(&engine->membership->claims, claim, all);
    timer_stop(&claim->due);
    procset_free(&claim->members);
    procset_free(&claim->gone);
    free(claim->sig);
    free(claim);
}
