/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does with its later try of an operation when an earlier try, which it has skipped,
 * has failed for good: rule 1 of rollup/tries.c.
 */
#include "common/tracker/recovery/recovery.h"

#include "common/util/log.h"

enum { SETTLE_MS = 1000 /* for the word on the later try itself, if that is on its way */ };

/* Whether a failure names a lost process that the later try names, too. */
static bool names_some_of(const struct tracker_debt *debt, const struct tracker *later)
{
    struct procset rest = {0};
    bool names = procset_except(&rest, &later->parts.members, &debt->gone) == 0 &&
                 procset_size(&rest) < procset_size(&later->parts.members);
    procset_free(&rest);
    return names;
}

struct tracker *tries_owing(const struct engine *engine, const struct tracker *later,
                            const struct engine_call *call)
{
    struct tracker *t, *found = NULL;
    const struct tracker_failure *own = &later->failure;
    uint64_t first = own->nowed > 0 ? own->owed[0].generation : UINT64_MAX;
    TAILQ_FOREACH (t, &engine->all, all) {
        const struct tracker_failure *f = &t->failure;
        if (f->nowed > 0 && f->owed[0].generation < first && t->tried != call->op &&
            (failure_is_for_good(engine, f->owed[0].status, &f->owed[0].gone) ||
             names_some_of(&f->owed[0], later)) &&
            tries_is_later(later, t, call->gone)) {
            found = t;
            first = f->owed[0].generation;
        }
    }
    return found;
}

/* Tells the servers that have contributed, as far as a child has said. */
static void tell_subtree(struct engine *engine, const struct tracker *later,
                         const struct tracker_child *child, const struct tracker *t,
                         const struct tracker_debt *past)
{
    struct ranges below = {0};
    if (child->said != CHILD_NOTHING)
        tree_subtree(&later->tree, child->slot, &below);
    for (struct ranges_at at = {0}; ranges_next(&below, &at);) {
        uint32_t slot = tracker_slot_of(t, tracker_node(later, at.number));
        if (!ranges_have(&child->missing, at.number) && slot != TREE_NONE &&
            !tracker_slot_lost(engine, t, slot))
            rollup_tell(engine, t, slot, past, 0);
    }
    ranges_free(&below);
}

/* Tells the servers that have contributed to a later try of what has failed @p t for good. */
static void tell_below(struct engine *engine, const struct tracker *later, const struct tracker *t,
                       const struct tracker_debt *past)
{
    for (uint32_t i = 0; i < later->nchildren; i++)
        tell_subtree(engine, later, &later->children[i], t, past);
}

/* Forgets a later try in which no call of ours waits, and tells the servers that have contributed.
 * The tracker may be gone afterwards. */
static void forget(struct engine *engine, struct tracker *later, const struct tracker *t)
{
    const struct tracker_debt *past = tries_for_good_after(engine, t, 0);
    for (const struct tracker_debt *next = past; next != NULL;
         next = tries_for_good_after(engine, t, next->generation))
        past = next; /* the last one is what was just learnt */
    if (past != NULL)
        tell_below(engine, later, t, past);
    tracker_restart(engine, later);
    tracker_tidy(engine, later);
}

/* Ends the later tries in which no call of ours waits. @return the one in which one does, or NULL
 */
static struct tracker *end_others(struct engine *engine, const struct tracker *t,
                                  const struct engine_result *result)
{
    struct tracker *later, *next, *own = NULL;
    if (!engine->retries || t->failure.given_up ||
        !failure_is_for_good(engine, result->status, result->gone))
        return NULL;
    for (later = TAILQ_FIRST(&engine->all); later != NULL; later = next) {
        next = TAILQ_NEXT(later, all);
        if (later->state == TRACKER_IDLE || !later->later_try || !tries_is_later(later, t, NULL))
            continue;
        if (later->call == NULL)
            forget(engine, later, t);
        else
            own = later;
    }
    return own != NULL && tries_is_later(own, t, own->call->gone) ? own : NULL;
}

void tries_end(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct tracker *own = end_others(engine, t, result);
    if (own != NULL && own->settle == 0)
        own->settle = engine_now(engine) + SETTLE_MS;
    if (own != NULL)
        tracker_due(own);
}

struct tracker *tries_end_given_up(struct engine *engine, struct tracker *t,
                                   const struct engine_result *result)
{
    struct tracker *own = end_others(engine, t, result);
    if (own == NULL || t->tried == own->call->op)
        return own;
    tracker_restart(engine, own); /* above, what it has said may have looked late */
    return NULL;
}

void tries_forgive(struct engine *engine, const struct tracker *later,
                   const struct engine_call *call, uint64_t generation,
                   const struct engine_result *result)
{
    struct tracker *t;
    if (call->gone == NULL || !failure_is_for_good(engine, result->status, result->gone))
        return;
    TAILQ_FOREACH (t, &engine->all, all) {
        struct tracker_debt debt;
        uint32_t n = 0;
        for (uint32_t i = 0; i < t->failure.nowed; i++)
            if (t->failure.owed[i].generation != 0 && t->failure.owed[i].generation < generation)
                n = i + 1;
        if (n > 0 && !tries_is_later(later, t, call->gone))
            n = 0;
        for (; n > 0 && tracker_owed(t, &debt); n--)
            procset_free(&debt.gone);
    }
}

bool tries_settle(struct engine *engine, struct tracker *own, uint64_t before)
{
    struct tracker_debt debt;
    struct tracker *t = own->settle != 0 ? tries_owing(engine, own, own->call) : NULL;
    if (own->settle == 0 || (t != NULL && t->failure.owed[0].generation >= before))
        return false;
    own->settle = 0;
    if (t == NULL || !tracker_owed(t, &debt)) {
        rollup_up(engine, own); /* which had to wait */
        return true;
    }
    const struct engine_result result = debt_result(&debt);
    tries_forgive(engine, own, own->call, debt.generation, &result);
    tries_answer(engine, own, t, debt.generation, &result);
    procset_free(&debt.gone);
    return true;
}

void tries_answer(struct engine *engine, struct tracker *own, const struct tracker *t,
                  uint64_t generation, const struct engine_result *result)
{
    struct tracker_release release = {.result = *result};
    struct engine_call *ended = NULL;
    const struct tracker_debt *past =
        generation != 0 ? tries_for_good_after(engine, t, generation - 1) : NULL;
    if (past != NULL && past->generation == generation)
        tell_below(engine, own, t, past);
    log_debug("tracker: others have failed an earlier try for good");
    if (own->assembly != NULL) { /* members have joined the later try */
        struct rollup_more more = {0};
        assembly_detach(engine, own, true, &more);
        release.op = more.op;
        release.added = more.added;
        assembly_told(engine, own, more.assembly, NULL, &release, &ended);
        release_end(&release);
    }
    tracker_end(engine, own, result);
    calls_done(&ended, result);
}
