/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of added members. Such a call, a join, waits on its own server until a claim takes it and
 * the construct ends, until its deadline, or until libpmix has answered it with another call's
 * result.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether leaders of this server have called for the same group: the call's fate is theirs, since
 * PMIx's library answers all calls of one id on a server at once. */
static bool is_busy(const struct engine *engine, const char *id)
{
    const struct tracker *t;
    const struct waiting *w;
    bool busy = false;
    TAILQ_FOREACH (w, &engine->membership->leads, all)
        busy = busy || strcmp(w->call->id, id) == 0;
    TAILQ_FOREACH (t, &engine->all, all)
        busy = busy || (t->call != NULL && coll_traits(t->parts.kind)->adds &&
                        strcmp(t->parts.id, id) == 0);
    return busy;
}

/* Takes a call out of those that wait. */
static struct engine_call *leave(struct engine *engine, struct waiting *w)
{
    struct engine_call *call = w->call;
    TAILQ_REMOVE(&engine->membership->joins, w, all);
    timer_stop(&w->due);
    free(w);
    return call;
}

static uint64_t due_at(const struct waiting *w)
{
    const uint64_t late = (uint64_t)timers_due(w->due.timers, (int64_t)w->deadline);
    return timer_earliest((uint64_t[]){late, w->report}, 2);
}

static timer_fire tick;

void engine_join(struct engine *engine, struct engine_call *call)
{
    struct waiting *w = engine->closing ? NULL : calloc(1, sizeof *w);
    call_begin(engine, call, COLL_CONSTRUCT);
    if (w == NULL) {
        call_refuse(call, engine->env.codes.closing);
        return;
    }
    w->call = call;
    w->opened = engine_now(engine);
    w->deadline = call->timeout > 0 ? engine_clock(engine) + call->timeout * 1000ull : 0;
    w->report = engine->env.stall > 0 ? w->opened + engine->env.stall * 1000ull : 0;
    timer_init(&w->due, engine->env.timers, tick, engine);
    timer_at(&w->due, (int64_t)due_at(w));
    TAILQ_INSERT_TAIL(&engine->membership->joins, w, all);
    joins_try_all(engine, call->id);
}

static bool member_withdraw(struct engine *engine, struct engine_call *call)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (w->call == call)
            break;
    if (w == NULL || w->claim != NULL)
        return false;
    leave(engine, w);
    return true;
}

bool engine_withdraw(struct engine *engine, struct engine_call *call)
{
    return member_withdraw(engine, call) || leader_withdraw(engine, call);
}

void member_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = *w->call->caller};
    char what[256] = "";
    if (waiting_is_named(w))
        engine->env.ranks(engine->env.arg, &sig, &engine->env.self, 1, false, what, sizeof what);
    else
        snprintf(what, sizeof what, "a process on %s",
                 engine->env.name(engine->env.arg, engine->env.self));
    snprintf(buf, cap,
             "group \"%s\" construct: called as an added member, and added by no leader: %s",
             w->call->id, what);
}

static void expire(struct engine *engine, struct waiting *w)
{
    struct engine_call *call = w->call;
    struct claim *claim = w->claim;
    char text[512];
    if (claim == NULL)
        TAILQ_FOREACH (claim, &engine->membership->claims, all)
            if (claim->state == CLAIM_OPEN && claim_wants(claim, call->id, call->caller))
                break;
    if (claim != NULL && claim->state == CLAIM_OPEN) { /* others of this server are missing */
        w->deadline += ENGINE_GRACE_MS;
        joins_tell(engine, claim, engine->env.codes.timeout);
        return;
    }
    if (claim == NULL && is_busy(engine, call->id)) {
        w->deadline += ENGINE_GRACE_MS;
        return;
    }
    member_describe(engine, w, text, sizeof text);
    if (claim != NULL)
        log_error("timed out after %u s: group \"%s\" construct: no word of node %s, which decides",
                  call->timeout, call->id, engine->env.name(engine->env.arg, claim->decider));
    else
        log_error("timed out after %u s: %s", call->timeout, text);
    call_refuse(leave(engine, w), engine->env.codes.timeout);
}

static void tick(void *arg, struct timer *due)
{
    struct engine *engine = arg;
    struct waiting *w = TIMER_OF(due, struct waiting, due);
    uint64_t now = engine_now(engine);
    char text[512];
    if (!engine_is_due(engine, due, due_at(w)))
        return;
    if (w->deadline != 0 && w->deadline <= engine_clock(engine)) {
        expire(engine, w);
    } else {
        w->report += engine->env.stall * 1000ull;
        member_describe(engine, w, text, sizeof text);
        if (w->claim == NULL)
            engine_stalled(engine, w->opened, now, text, NULL, 0);
    }
}

void member_close(struct engine *engine)
{
    struct engine_call *ended = NULL;
    struct engine_result result = {.status = engine->env.codes.closing};
    struct claim *claim;
    struct waiting *w;
    TAILQ_FOREACH (claim, &engine->membership->claims, all)
        if (claim->state == CLAIM_OPEN && claim->decider != engine->env.self)
            joins_tell(engine, claim, result.status);
    while ((claim = TAILQ_FIRST(&engine->membership->claims)) != NULL)
        claim_free(engine, claim);
    while ((w = TAILQ_FIRST(&engine->membership->joins)) != NULL)
        claim_release(engine, w, &ended);
    calls_done(&ended, &result);
}
