/* SPDX-License-Identifier: BSD-3-Clause */
/* Several tries of one operation.
 *
 * An operation that goes on without lost participants is tried again by those that are left, each
 * time under the signature of fewer participants (retry.h). A try fails for good by a deadline, or
 * by an error that names no lost process: then whoever took part in it has its answer, and makes no
 * later try. Another server may have learnt of more losses at once, and so have skipped that try.
 * Its own, later try would wait for calls that nobody makes, until the others call for the next
 * operation of that id. So three rules tie a later try to the tries before it:
 *
 * 1. A failure for good ends each later try on every server that hears of it. The call that waits
 *    there is answered with it a second later: it may be of the next operation, and the word on
 * this one still on its way. Where no call waits, contributions to the later try are dropped at
 * once, and their senders are told.
 * 2. A contribution to a later try carries the generation of the last such failure that its sender
 *    knows. A receiver that knows a later one drops the contribution, and tells the sender.
 * 3. A sender says what it knows before it contributes. So no server has contributions that belong
 *    to different operations: the failure comes between them.
 *
 * Nothing of this is sent or looked for while no operation is tried again.
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <string.h>

enum { SETTLE_MS = 1000 /* for the word on the later try itself, if that is on its way */ };

static bool is_within(const struct procset *set, const struct procset *all)
{
    struct procset rest = {0};
    bool within = procset_except(&rest, set, all) == 0 && rest.nparts == 0;
    procset_free(&rest);
    return within;
}

/* Whether @p later can be a later try of what was tried under @p t's signature.
 * @param gone with it: without whom; then nobody else may be missing either */
static bool is_later(const struct tracker *later, const struct tracker *t,
                     const struct procset *gone)
{
    const struct signature *a = &later->parts, *b = &t->parts;
    struct procset all = {0};
    bool is = later != t && a->kind == b->kind && strcmp(a->id, b->id) == 0 &&
              is_within(&a->members, &b->members);
    if (is && gone != NULL)
        is = procset_unite(&all, &a->members) == 0 && procset_unite(&all, gone) == 0 &&
             is_within(&b->members, &all);
    procset_free(&all);
    return is;
}

static bool is_final(const struct engine *engine, int32_t status, const struct procset *gone)
{
    return status == 0 || status == engine->env.codes.timeout || gone == NULL || gone->nparts == 0;
}

/* @return the first failure for good that is remembered after the generation @p known, or NULL */
static const struct tracker_past *final_after(const struct engine *engine, const struct tracker *t,
                                              uint64_t known)
{
    const struct tracker_past *past;
    while ((past = tracker_past_after(t, known)) != NULL &&
           !is_final(engine, past->debt.status, &past->debt.gone))
        known = past->generation;
    return past;
}

/* A contribution may come so late after a failure, and no later: see ENGINE_REMEMBER_MS. */
static bool is_recent(const struct engine *engine, const struct tracker *t)
{
    return engine->env.now(engine->env.arg) < t->failure.at + ENGINE_STRAGGLER_MS;
}

uint64_t tries_known(const struct engine *engine, const struct tracker *later, bool recent)
{
    const struct tracker *t;
    const struct tracker_past *past;
    uint64_t known = 0;
    TAILQ_FOREACH (t, &engine->all, all)
        if ((!recent || is_recent(engine, t)) && final_after(engine, t, known) != NULL &&
            is_later(later, t, NULL))
            while ((past = final_after(engine, t, known)) != NULL)
                known = past->generation;
    return known;
}

void tries_tell(struct engine *engine, const struct tracker *later, uint32_t node, uint64_t known)
{
    const struct tracker *t;
    TAILQ_FOREACH (t, &engine->all, all) {
        const struct tracker_past *past = final_after(engine, t, known);
        uint32_t slot = past != NULL && is_recent(engine, t) && is_later(later, t, NULL)
                            ? tracker_slot_of(t, node)
                            : TREE_NONE;
        if (slot == TREE_NONE || slot == t->self || tracker_slot_lost(engine, t, slot))
            continue;
        for (; past != NULL; past = final_after(engine, t, past->generation))
            rollup_tell(engine, t, slot, past);
    }
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
            is_final(engine, f->owed[0].status, &f->owed[0].gone) &&
            is_later(later, t, call->gone)) {
            found = t;
            first = f->owed[0].generation;
        }
    }
    return found;
}

/* Tells those who have contributed, as far as a child has said. */
static void tell_subtree(struct engine *engine, const struct tracker *later,
                         const struct tracker_child *child, const struct tracker *t,
                         const struct tracker_past *past)
{
    struct ranges below = {0};
    if (child->said != CHILD_NOTHING)
        tree_subtree(&later->tree, child->slot, &below);
    for (uint32_t i = 0; i < below.n; i++)
        for (uint32_t at = below.v[i].first; at <= below.v[i].last; at++) {
            uint32_t slot = tracker_slot_of(t, tracker_node(later, at));
            if (!ranges_have(&child->missing, at) && slot != TREE_NONE &&
                !tracker_slot_lost(engine, t, slot))
                rollup_tell(engine, t, slot, past);
        }
    ranges_free(&below);
}

/* Forgets a later try in which no call of ours waits, and tells those that have contributed. The
 * tracker may be gone afterwards. */
static void forget(struct engine *engine, struct tracker *later, const struct tracker *t)
{
    const struct tracker_past *past = final_after(engine, t, 0);
    for (const struct tracker_past *next = past; next != NULL;
         next = final_after(engine, t, next->generation))
        past = next; /* the last one is what was just learnt */
    for (uint32_t i = 0; i < later->nchildren && past != NULL; i++)
        tell_subtree(engine, later, &later->children[i], t, past);
    tracker_again(engine, later);
    tracker_tidy(engine, later);
}

/* Ends the later tries in which no call of ours waits. @return the one in which one does, or NULL
 */
static struct tracker *end_others(struct engine *engine, const struct tracker *t,
                                  const struct engine_result *result)
{
    struct tracker *later, *next, *own = NULL;
    if (!engine->retries || t->failure.given_up || !is_final(engine, result->status, result->gone))
        return NULL;
    for (later = TAILQ_FIRST(&engine->all); later != NULL; later = next) {
        next = TAILQ_NEXT(later, all);
        if (later->state == TRACKER_IDLE || !later->again || !is_later(later, t, NULL))
            continue;
        if (later->call == NULL)
            forget(engine, later, t);
        else
            own = later;
    }
    return own != NULL && is_later(own, t, own->call->gone) ? own : NULL;
}

void tries_end(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct tracker *own = end_others(engine, t, result);
    if (own != NULL && t->tried != own->call->op && own->settle == 0)
        own->settle = engine->env.now(engine->env.arg) + SETTLE_MS;
    if (own != NULL)
        tracker_due(engine, own);
}

struct tracker *tries_end_given_up(struct engine *engine, struct tracker *t,
                                   const struct engine_result *result)
{
    struct tracker *own = end_others(engine, t, result);
    if (own == NULL || t->tried == own->call->op)
        return own;
    tracker_again(engine, own); /* above, what it has said may have looked late */
    return NULL;
}

void tries_settle(struct engine *engine, struct tracker *own)
{
    struct tracker_debt debt;
    struct tracker *t = own->call != NULL ? tries_owing(engine, own, own->call) : NULL;
    own->settle = 0;
    if (t == NULL || !tracker_owed(t, &debt))
        return;
    const struct engine_result result = {.status = debt.status,
                                         .gone = debt.gone.nparts > 0 ? &debt.gone : NULL};
    tracker_tidy(engine, t);
    tries_answer(engine, own, &result);
    procset_free(&debt.gone);
}

void tries_answer(struct engine *engine, struct tracker *own, const struct engine_result *result)
{
    struct tracker_release release = {.result = *result};
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    log_debug("tracker: others have failed an earlier try for good");
    if (own->assembly != NULL) { /* members have joined the later try */
        struct assembly *a = assembly_detach(engine, own, true, &release);
        assembly_tell(engine, a, own, NULL, &release);
        member_take(engine, own, &release, &ended);
        release_end(&release);
        assembly_free(a);
    }
    tracker_end(engine, own, result);
    member_done(&ended, result);
}
