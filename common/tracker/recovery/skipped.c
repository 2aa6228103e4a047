/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does with its later try of an operation when an earlier try, which it has skipped,
 * has failed for good: rule 1 of rollup/tries.c.
 */
#include "common/tracker/recovery/recovery.h"

#include "common/util/log.h"

enum { SETTLE_MS = 1000 /* for the word on the later try itself, if that is on its way */ };

struct skipped tries_skipped(const struct engine *engine, const struct tracker *later,
                             const struct engine_call *call)
{
    struct skipped first = {0};
    const struct tracker *t;
    TAILQ_FOREACH (t, &engine->all, all) {
        const struct tracker_past *past = tries_for_good_after(engine, t, 0);
        while (past != NULL && past->heard < call->op)
            past = tries_for_good_after(engine, t, past->generation);
        if (past != NULL && (first.past == NULL || past->generation < first.past->generation) &&
            t->tried != call->op && (t == later || tries_is_later(later, t, call->gone)))
            first = (struct skipped){t, past};
    }
    return first;
}

/* Tells the servers that have contributed, as far as a child has said. */
static void tell_subtree(struct engine *engine, const struct tracker *later,
                         const struct tracker_child *child, const struct tracker *t,
                         const struct tracker_past *past)
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
                       const struct tracker_past *past)
{
    for (uint32_t i = 0; i < later->nchildren; i++)
        tell_subtree(engine, later, &later->children[i], t, past);
}

/* Forgets a later try in which no call of ours waits, and tells the servers that have contributed.
 * The tracker may be gone afterwards. */
static void forget(struct engine *engine, struct tracker *later, const struct tracker *t)
{
    const struct tracker_past *past = tries_for_good_after(engine, t, 0);
    for (const struct tracker_past *next = past; next != NULL;
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

bool tries_settle(struct engine *engine, struct tracker *own, uint64_t before)
{
    const struct skipped skipped =
        own->settle != 0 ? tries_skipped(engine, own, own->call) : (struct skipped){0};
    if (own->settle == 0 || (skipped.past != NULL && skipped.past->generation >= before))
        return false;
    own->settle = 0;
    if (skipped.past == NULL) {
        rollup_up(engine, own); /* which had to wait */
        return true;
    }
    struct tracker_past failed;
    past_copy(&failed, skipped.past);
    const struct engine_result result = past_result(&failed);
    tries_answer(engine, own, skipped.t, failed.generation, &result);
    procset_free(&failed.gone);
    return true;
}

void tries_answer(struct engine *engine, struct tracker *own, const struct tracker *t,
                  uint64_t generation, const struct engine_result *result)
{
    struct tracker_release release = {.result = *result};
    struct engine_call *ended = NULL;
    const struct tracker_past *past = tries_for_good_after(engine, t, generation - 1);
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
