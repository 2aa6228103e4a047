/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures that are remembered, for other servers that ask. Also how calls are answered. */
#include "common/tracker/rollup/tracker.h"

#include <stdlib.h>
#include <string.h>

const struct tracker_past *tracker_past_after(const struct tracker *t, uint64_t known)
{
    for (uint32_t i = 0; i < t->failure.npast; i++)
        if (t->failure.past[i].generation > known)
            return &t->failure.past[i];
    return NULL;
}

bool failure_is_for_good(const struct engine *engine, int32_t status, const struct procset *gone)
{
    return status == 0 || status == engine->env.codes.timeout || gone == NULL || gone->nparts == 0;
}

int32_t tracker_past_loss(const struct engine *engine, const struct tracker *t,
                          struct procset *lost)
{
    struct procset rest = {0};
    for (uint32_t i = t->failure.npast; i-- > 0 && !t->later_try;) {
        const struct tracker_past *past = &t->failure.past[i];
        if (!failure_is_for_good(engine, past->status, &past->gone) &&
            procset_except(&rest, &t->parts.members, &past->gone) == 0)
            procset_except(lost, &t->parts.members, &rest);
        procset_free(&rest);
        rest = (struct procset){0};
        if (lost->nparts > 0)
            return past->status;
    }
    return 0;
}

static void note(struct tracker_past *past, uint64_t generation, const struct engine_result *result)
{
    *past = (struct tracker_past){.generation = generation, .status = result->status};
    if (result->gone != NULL)
        procset_unite(&past->gone, result->gone);
}

void tracker_remember(const struct engine *engine, struct tracker *t,
                      const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    uint64_t newest = f->npast > 0 ? f->past[f->npast - 1].generation : 0;
    uint32_t at = 0; /* the oldest after which a call goes on, of those that are remembered */
    if (f->generation <= newest)
        return;
    while (at < f->npast && failure_is_for_good(engine, f->past[at].status, &f->past[at].gone))
        at++;
    if (f->npast == TRACKER_PAST) {
        at = at < f->npast ? at : 0;
        procset_free(&f->past[at].gone);
        memmove(f->past + at, f->past + at + 1, (--f->npast - at) * sizeof *f->past);
    }
    note(&f->past[f->npast], f->generation, result);
    f->past[f->npast++].heard = engine->numbers;
    if (failure_is_for_good(engine, result->status, result->gone))
        f->for_good = f->generation;
}

void past_copy(struct tracker_past *to, const struct tracker_past *from)
{
    const struct engine_result result = past_result(from);
    note(to, from->generation, &result);
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

struct engine_result past_result(const struct tracker_past *past)
{
    return (struct engine_result){.status = past->status,
                                  .gone = past->gone.nparts > 0 ? &past->gone : NULL};
}

void call_fail(struct engine_call *call, struct tracker_past *past)
{
    struct engine_result result = past_result(past);
    call_end(call, &result);
    procset_free(&past->gone);
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
