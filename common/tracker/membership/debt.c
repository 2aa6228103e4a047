/* SPDX-License-Identifier: BSD-3-Clause */
/* What is owed to added members. When a construct fails before a member has called, the member gets
 * the same failure once it calls: the claim stays, in the state "owed", with the number of such
 * calls.
 *
 * A construct that goes on without the lost is one of several tries, which different servers may
 * decide. A member's call may be taken by a later try before the failure of an earlier one is heard
 * here. Once the later try has succeeded, the member calls no more for the earlier one. So the
 * success settles what is owed for the earlier try, in whichever order the two are heard: the claim
 * of a later try that has succeeded stays for a while, in the state "over".
 */
#include "common/tracker/membership/private.h"

#include <string.h>

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

/* Whether the leaders of @p success are those of @p failed that are not lost. */
static bool has_leaders_left(const struct claim *success, const struct claim *failed)
{
    struct signature left = {0}, all = {0};
    struct procset both = {0};
    bool has = signature_read(&left, success->sig, success->siglen) == 0 &&
               signature_read(&all, failed->sig, failed->siglen) == 0 &&
               procset_unite(&both, &left.members) == 0 &&
               procset_unite(&both, &success->gone) == 0 &&
               procset_within(&left.members, &all.members) && procset_within(&all.members, &both);
    procset_free(&both);
    signature_free(&left);
    signature_free(&all);
    return has;
}

/* Whether a failure is of an earlier try of what has succeeded: the success has gone on without
 * all processes that the failure names. */
static bool is_earlier(const struct claim *failed, const struct claim *success)
{
    return strcmp(failed->id, success->id) == 0 && failed->generation < success->generation &&
           failed->gone.nparts > 0 && procset_within(&failed->gone, &success->gone) &&
           failed->sig != NULL && success->sig != NULL && has_leaders_left(success, failed);
}

/* Members of the success are answered. */
static void settle(struct claim *failed, const struct claim *success)
{
    struct procset rest = {0};
    procset_unite(&failed->answered, &success->members);
    procset_except(&rest, &failed->members, &failed->answered);
    if (procset_size(&rest) < failed->left)
        failed->left = procset_size(&rest);
    procset_free(&rest);
}

void debt_settle(struct engine *engine, const struct claim *success)
{
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->membership->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim == success || !claim_is_over(claim) || !is_earlier(claim, success))
            continue;
        if (claim->state == CLAIM_OWED)
            settle(claim, success);
        bool ends = claim->state == CLAIM_OWED ? claim->left == 0
                                               : procset_within(&claim->members, &success->members);
        if (ends)
            claim_free(engine, claim);
    }
}

void debt_settled(struct engine *engine, struct claim *failed)
{
    const struct claim *success;
    TAILQ_FOREACH (success, &engine->membership->claims, all)
        if (success->state == CLAIM_OVER && is_earlier(failed, success)) {
            claim_unfill(engine, failed);
            settle(failed, success);
        }
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
