/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures: some are remembered for other servers that ask, and some are owed to local calls which
 * were not made yet. Also how calls are answered.
 */
#include "common/tracker/rollup/tracker.h"

#include <stdlib.h>
#include <string.h>

const struct tracker_debt *tracker_past_after(const struct tracker *t, uint64_t known)
{
    for (uint32_t i = 0; i < t->failure.npast; i++)
        if (t->failure.past[i].generation > known)
            return &t->failure.past[i];
    return NULL;
}

static void note(struct tracker_debt *debt, uint64_t generation, const struct engine_result *result)
{
    *debt = (struct tracker_debt){.generation = generation, .status = result->status};
    if (result->gone != NULL)
        procset_unite(&debt->gone, result->gone);
}

void tracker_remember(struct tracker *t, const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    uint64_t newest = f->npast > 0 ? f->past[f->npast - 1].generation : 0;
    if (f->generation <= newest)
        return;
    if (f->npast == TRACKER_PAST) {
        procset_free(&f->past[0].gone);
        memmove(f->past, f->past + 1, --f->npast * sizeof *f->past);
    }
    note(&f->past[f->npast++], f->generation, result);
}

bool tracker_owed(struct tracker *t, struct tracker_debt *debt)
{
    struct tracker_failure *f = &t->failure;
    if (f->nowed == 0)
        return false;
    *debt = f->owed[0];
    memmove(f->owed, f->owed + 1, --f->nowed * sizeof *f->owed);
    return true;
}

/* Others have waited in vain: what a call here would be answered with would keep it out of their
 * next operation, too. */
static void miss(const struct engine *engine, struct tracker *t)
{
    struct tracker_debt debt = {0};
    do {
        procset_free(&debt.gone);
        if (engine->env.missed != NULL)
            engine->env.missed(engine->env.arg, t->sig, t->siglen);
    } while (tracker_owed(t, &debt));
}

void tracker_owe(const struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    if (result->status == engine->env.codes.timeout && !coll_traits(t->parts.kind)->is_group) {
        miss(engine, t);
        return;
    }
    struct tracker_debt *owed = realloc(f->owed, (f->nowed + 1ul) * sizeof *owed);
    if (owed == NULL)
        return;
    f->owed = owed;
    note(&owed[f->nowed++], f->given_up ? 0 : f->generation, result);
}

void tracker_correct(struct tracker *t, const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    struct tracker_debt *last = f->nowed > 0 ? &f->owed[f->nowed - 1] : NULL;
    if (last == NULL || last->generation != 0)
        return;
    procset_free(&last->gone);
    note(last, f->generation, result);
}

/* Whether a frame belongs to an operation that has failed here already. Its sender repeats
 * the generation of the last failure that it knows, and it learns of ours before it calls again:
 * so a lower one is late. We forget sooner than it does, so that it never looks late by that. */
bool tracker_is_late(const struct engine *engine, const struct tracker *t, uint64_t known)
{
    return t->failure.generation > known &&
           engine_now(engine) < t->failure.at + ENGINE_STRAGGLER_MS;
}

void call_begin(struct engine *engine, struct engine_call *call, enum coll_kind kind)
{
    call->engine = engine;
    call->kind = kind;
    call->made = engine_now_us(engine);
    call->generation = 0;
    call->last = ENGINE_NOBODY;
}

void call_end(struct engine_call *call, const struct engine_result *result)
{
    struct engine *engine = call->engine;
    const struct engine_ended ended = {.kind = call->kind,
                                       .sig = call->sig,
                                       .siglen = call->siglen,
                                       .begin = call->made,
                                       .end = engine_now_us(engine),
                                       .generation = call->generation,
                                       .status = result->status,
                                       .last = call->last,
                                       .late = call->late};
    tally_wait(&engine->tally, ended.kind, ended.sig, ended.siglen, ended.end - ended.begin);
    if (engine->env.ended != NULL)
        engine->env.ended(engine->env.arg, &ended);
    call->done(call, result);
}

void call_refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call_end(call, &result);
}

struct engine_result debt_result(const struct tracker_debt *debt)
{
    return (struct engine_result){.status = debt->status,
                                  .gone = debt->gone.nparts > 0 ? &debt->gone : NULL};
}

void call_pay(struct engine_call *call, struct tracker_debt *debt)
{
    struct engine_result result = debt_result(debt);
    call_end(call, &result);
    procset_free(&debt->gone);
}

void calls_add(struct engine_call **calls, struct engine_call *call)
{
    while (*calls != NULL)
        calls = &(*calls)->next;
    call->next = NULL;
    *calls = call;
}

void calls_done(struct engine_call **calls, const struct engine_result *result)
{
    struct engine_call *call;
    while ((call = *calls) != NULL) {
        *calls = call->next;
        call_end(call, result);
    }
}
