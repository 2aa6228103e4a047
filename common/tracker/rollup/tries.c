/* SPDX-License-Identifier: BSD-3-Clause */
/* Several tries of one operation.
 *
 * An operation that goes on without lost participants is tried again by the participants that are
 * left, each time under the signature of fewer participants (retry.h). A try fails for good by a
 * deadline, or by an error that names no lost process. Every server that took part in it has its
 * answer then, and makes no later try. Another server may have learnt of more losses at once, and
 * so have skipped that try. Its own, later try would wait for calls that no process makes, until
 * the others call for the next operation of that id. And two roots might fail two tries of one
 * operation for good, each for a reason of its own. So these rules tie a later try to the tries
 * before it:
 *
 * 1. A failure for good ends each later try on every server that hears of it. A call that
 *    waits there is answered with that failure a second later: the call may be of the next
 *    operation, and the word on this one may still be on its way. Where no call waits,
 *    contributions to the later try are dropped at once, and their senders are told. A call that
 *    comes later, of an operation called before the failure was heard, is answered at once.
 * 2. A contribution to a later try carries the generation of the last such failure that its sender
 *    knows. A receiver that knows a later one drops the contribution, and tells the sender.
 * 3. A server says what it knows of such failures before it contributes. So no server has
 *    contributions that belong to different operations: the failure comes between them.
 * 4. A server tries nothing with processes without which a call of it has gone on, in this or an
 *    earlier operation: they are lost for good, until their namespace has ended. A call that is
 *    such a try is answered at once with their loss, and goes on. When others contribute to such a
 *    try or ask for it, the server fails it with their loss. Else the others would wait there for
 *    that server, and it for them.
 * 5. The root of a later try fails it for good only when all of its servers have contributed, or at
 *    the deadline. A server contributes when the try before has failed for it, and not for good. So
 *    no root has failed that try for good, unless its word was lost with it, and none will: a try
 *    that a server has skipped never gets all contributions. A loss ends a later try at once, for
 *    all go on after it. So do servers that do not fit together, since they take no contributions.
 *
 * By rule 4 all tries that a server makes after an operation come after the try with which that
 * operation has ended, in whichever order it learns of losses. So rules 1 to 3 hold for them.
 *
 * This file has 2 to 5; recovery/skipped.c has 1. Nothing of this is sent or looked for while no
 * operation is tried again.
 */
#include "common/tracker/rollup/rollup.h"

#include <string.h>

bool tries_is_later(const struct tracker *later, const struct tracker *t,
                    const struct procset *gone)
{
    const struct signature *a = &later->parts, *b = &t->parts;
    struct procset all = {0};
    bool is = later != t && a->kind == b->kind && strcmp(a->id, b->id) == 0 &&
              procset_within(&a->members, &b->members);
    if (is && gone != NULL)
        is = procset_unite(&all, &a->members) == 0 && procset_unite(&all, gone) == 0 &&
             procset_within(&b->members, &all);
    procset_free(&all);
    return is;
}

bool failure_waits(const struct engine *engine, const struct tracker *t)
{
    const struct engine_codes *codes = &engine->env.codes;
    bool is_of_call = t->status != codes->timeout && t->status != codes->closing;
    return (t->later_try || is_of_call) && t->status != codes->library &&
           failure_is_for_good(engine, t->status, &t->gone);
}

const struct tracker_past *tries_for_good_after(const struct engine *engine,
                                                const struct tracker *t, uint64_t known)
{
    const struct tracker_past *past;
    while ((past = tracker_past_after(t, known)) != NULL &&
           !failure_is_for_good(engine, past->status, &past->gone))
        known = past->generation;
    return past;
}

/* A contribution may come so late after a failure, and no later: see ENGINE_REMEMBER_MS. */
static bool is_recent(const struct engine *engine, const struct tracker *t)
{
    return engine_now(engine) < t->failure.at + ENGINE_STRAGGLER_MS;
}

bool tries_names_lost(const struct engine *engine, const struct tracker *t, struct procset *lost)
{
    struct procset rest = {0};
    bool known = procset_except(&rest, &t->parts.members, &engine->without) == 0 &&
                 procset_except(lost, &t->parts.members, &rest) == 0;
    procset_free(&rest);
    return known && lost->nparts > 0;
}

uint64_t tries_known(const struct engine *engine, const struct tracker *later, bool recent)
{
    const struct tracker *t;
    uint64_t known = 0;
    TAILQ_FOREACH (t, &engine->all, all)
        if ((!recent || is_recent(engine, t)) && t->failure.for_good > known &&
            tries_is_later(later, t, NULL))
            known = t->failure.for_good;
    return known;
}

void tries_tell(struct engine *engine, const struct tracker *later, uint32_t node, uint64_t known)
{
    const struct tracker *t;
    TAILQ_FOREACH (t, &engine->all, all) {
        const struct tracker_past *past = tries_for_good_after(engine, t, known);
        uint32_t slot = past != NULL && is_recent(engine, t) && tries_is_later(later, t, NULL)
                            ? tracker_slot_of(t, node)
                            : TREE_NONE;
        if (slot == TREE_NONE || slot == t->self || tracker_slot_lost(engine, t, slot))
            continue;
        for (; past != NULL; past = tries_for_good_after(engine, t, past->generation))
            rollup_tell(engine, t, slot, past, 0);
    }
}
