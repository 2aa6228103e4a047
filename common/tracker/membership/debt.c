/* SPDX-License-Identifier: BSD-3-Clause */
/* What is owed to added members. When a construct fails before a member has called, the member gets
 * the same failure once it calls: the claim stays, in the state "owed", with the number of such
 * calls.
 */
#include "common/tracker/membership/private.h"

struct claim *debt_of(const struct engine *engine, const struct engine_call *call)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->membership->claims, all)
        if (claim->state == CLAIM_OWED && claim_wants(claim, call->id, call->caller))
            return claim;
    return NULL;
}

bool debt_take(struct engine *engine, struct engine_call *call, struct tracker_debt *debt)
{
    struct claim *claim = debt_of(engine, call);
    if (claim == NULL)
        return false;
    *debt = (struct tracker_debt){.status = claim->status};
    procset_unite(&debt->gone, &claim->gone);
    procset_unite(&claim->answered, call->caller);
    if (--claim->left == 0)
        claim_free(engine, claim);
    return true;
}

void debt_forget(struct engine *engine, const struct waiting *w, bool all)
{
    struct tracker_debt debt = {0};
    bool more = w->indebted;
    while (more) {
        more = debt_take(engine, w->call, &debt) && all && waiting_is_named(w);
        procset_free(&debt.gone);
        debt = (struct tracker_debt){0};
    }
}

void debt_reduce(struct engine *engine, struct claim *claim)
{
    struct procset rest = {0};
    uint64_t n = 0;
    procset_except(&rest, &claim->members, &claim->answered);
    for (struct procset_at at = {0}; n < claim->left && procset_next(&rest, &at);) {
        struct signature one = {.kind = COLL_CONSTRUCT};
        procset_add(&one.members, at.nspace, at.rank, at.rank);
        n += engine->env.local_status(engine->env.arg, &one) == 0;
        procset_free(&one.members);
    }
    procset_free(&rest);
    claim->left = n;
    if (n == 0)
        claim_free(engine, claim);
}

void debt_forgive(struct engine *engine, uint32_t decider, const struct engine_call *leader)
{
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->membership->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim->state != CLAIM_OWED || claim->decider != decider ||
            !claim_wants(claim, leader->id, leader->caller))
            continue;
        procset_unite(&claim->answered, leader->caller);
        if (--claim->left == 0)
            claim_free(engine, claim);
    }
}
