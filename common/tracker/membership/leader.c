/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaders of a bootstrap, on their own server. Each knows the group's id and how many leaders there
 * are, so they meet at the id's home, a server that every server can compute: home.c.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_head(struct engine *engine, struct wire_out *out, const struct waiting *w,
                     uint32_t leaders)
{
    wire_put_u8(out, FRAME_LEAD);
    wire_put_str(out, w->call->id);
    wire_put_u64(out, w->number);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, leaders);
}

/* Of the call's own time: it may have waited, or have had another home before. */
static uint64_t time_left(const struct engine *engine, const struct waiting *w)
{
    uint64_t all = w->call->timeout * 1000ull;
    uint64_t spent = engine_now(engine) - w->opened;
    return all > spent ? all - spent : 0;
}

static void send_lead(struct engine *engine, const struct waiting *w, int32_t status,
                      bool announced)
{
    const struct engine_call *call = w->call;
    struct engine_entry entry = {0, call->data, call->len, call->added, call->addedlen};
    struct wire_out out = {0};
    entry_acquaint(engine, w->home, &entry);
    put_head(engine, &out, w, call->leaders);
    wire_put_u32(&out, call->timeout);
    wire_put_u64(&out, time_left(engine, w));
    procset_write(call->caller, &out);
    wire_put_i32(&out, status);
    wire_put_u8(&out, announced);
    wire_put_u32(&out, call->flags);
    entries_put(&out, &entry, 1);
    assembly_send(engine, w->home, &out);
}

/* Whether another server is to decide, which may be lost. */
static bool has_far_home(const struct engine *engine, const struct waiting *w)
{
    return w->home != engine->env.self && w->home != ENGINE_NO_HOME;
}

/* Whether it is asked about now and then: its home may be lost, or be the others' no longer. */
static bool asks(const struct engine *engine, const struct waiting *w)
{
    return has_far_home(engine, w) || (w->home == engine->env.self && engine->env.home != NULL);
}

/* Takes a call out of those that wait. */
static struct engine_call *leave(struct engine *engine, struct waiting *w)
{
    struct engine_call *call = w->call;
    TAILQ_REMOVE(&engine->membership->leads, w, all);
    timer_stop(&w->due);
    free(w);
    return call;
}

static uint64_t due_at(const struct engine *engine, const struct waiting *w)
{
    const uint64_t late = (uint64_t)timers_due(w->due.timers, (int64_t)w->deadline);
    return timer_earliest((uint64_t[]){late, asks(engine, w) ? w->ask : 0}, 2);
}

static void tick(void *arg, struct timer *due)
{
    struct engine *engine = arg;
    struct waiting *w = TIMER_OF(due, struct waiting, due);
    uint64_t now = engine_now(engine);
    if (!engine_is_due(engine, due, due_at(engine, w)))
        return;
    if (w->deadline != 0 && w->deadline <= engine_clock(engine)) {
        log_error("timed out after %u s: group \"%s\" bootstrap: no word of node %s, which decides",
                  w->call->timeout, w->call->id,
                  w->home == ENGINE_NO_HOME ? "(which one is not known yet)"
                                            : engine->env.name(engine->env.arg, w->home));
        call_refuse(leave(engine, w), engine->env.codes.timeout);
    } else {
        w->ask = now + ENGINE_ASK_MS;
        if (has_far_home(engine, w))
            assembly_ping(engine, w->home); /* may tell us that it is lost */
        if (engine->env.home != NULL)
            engine->env.home(engine->env.arg, w->call->id, w->number); /* may end it */
    }
}

void engine_lead(struct engine *engine, struct engine_call *call)
{
    const struct engine_env *env = &engine->env;
    struct waiting *w = calloc(1, sizeof *w);
    call_begin(engine, call, COLL_CONSTRUCT);
    if (w == NULL || engine->closing) {
        free(w);
        call_refuse(call, engine->closing ? env->codes.closing : env->codes.lost);
        return;
    }
    w->call = call;
    w->home = w->next_home = ENGINE_NO_HOME;
    w->number = ++engine->numbers;
    w->opened = engine_now(engine);
    w->ask = w->opened + ENGINE_ASK_MS;
    if (call->timeout > 0)
        w->deadline = engine_clock(engine) + call->timeout * 1000ull + ENGINE_GRACE_MS;
    timer_init(&w->due, engine->env.timers, tick, engine);
    timer_at(&w->due, (int64_t)due_at(engine, w));
    TAILQ_INSERT_TAIL(&engine->membership->leads, w, all);
    if (env->home != NULL)
        env->home(env->arg, call->id, w->number); /* may end it */
    else
        engine_home(engine, w->number,
                    (uint32_t)(signature_hash(call->id, strlen(call->id)) % env->nnodes));
}

/* Only its home knows whether a call belongs to an operation by now, and says so: the call's own
 * server forgets one that is nowhere else. */
bool leader_withdraw(struct engine *engine, struct engine_call *call)
{
    struct waiting *w;
    struct wire_out out = {0};
    TAILQ_FOREACH (w, &engine->membership->leads, all)
        if (w->call == call)
            break;
    if (w == NULL)
        return false;
    w->next_home = ENGINE_NO_HOME;
    if (has_far_home(engine, w)) {
        put_head(engine, &out, w, 0);
        assembly_send(engine, w->home, &out);
        return false;
    }
    struct procset leader = {0};
    bool is_ours = w->home == ENGINE_NO_HOME || home_take_back(engine, w->home, w->number, &leader);
    procset_free(&leader);
    if (!is_ours)
        return false;
    leave(engine, w);
    return true;
}

static struct waiting *find(const struct engine *engine, uint64_t number)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->leads, all)
        if (w->number == number)
            break;
    return w;
}

void leader_end(struct engine *engine, uint32_t home, uint64_t number, struct engine_call **ended)
{
    struct waiting *w = find(engine, number);
    if (w != NULL && w->home == home)
        calls_add(ended, leave(engine, w));
}

/* The others may meet elsewhere by now. The call goes there when its home gives it back, as that
 * does unless it has all leaders. */
static void change_home(struct engine *engine, struct waiting *w, uint32_t node)
{
    struct wire_out out = {0};
    if (node == ENGINE_NO_HOME || node == w->home || node == w->next_home ||
        engine_is_lost(engine, node))
        return;
    w->next_home = node;
    put_head(engine, &out, w, 0);
    assembly_send(engine, w->home, &out);
}

bool leader_moves(struct engine *engine, uint32_t home, uint64_t number,
                  const struct procset *leading)
{
    struct waiting *w = find(engine, number);
    if (w == NULL || w->home != home || w->next_home == ENGINE_NO_HOME ||
        !procset_equal(leading, w->call->caller))
        return false;
    uint32_t next = w->next_home;
    w->home = w->next_home = ENGINE_NO_HOME;
    if (engine_is_lost(engine, next))
        engine->env.home(engine->env.arg, w->call->id, w->number); /* may end it */
    else
        engine_home(engine, w->number, next); /* the same */
    return true;
}

void engine_home(struct engine *engine, uint64_t call, uint32_t node)
{
    struct waiting *w = find(engine, call);
    if (w == NULL)
        return; /* it was taken back, or its deadline has passed */
    if (w->home != ENGINE_NO_HOME) {
        change_home(engine, w, node); /* may end it */
        return;
    }
    if (node == ENGINE_NO_HOME || engine_is_lost(engine, node)) {
        call_refuse(leave(engine, w), engine->env.codes.lost);
        return;
    }
    w->home = node;
    timer_sooner(&w->due, (int64_t)due_at(engine, w));
    send_lead(engine, w, w->call->status, false); /* may end it */
}

/* The first call whose home is that server. */
static struct waiting *at_home(const struct engine *engine, uint32_t node)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->leads, all)
        if (w->home == node)
            return w;
    return NULL;
}

/* The others of a bootstrap ask for another home, too. */
void leader_lost(struct engine *engine, uint32_t node)
{
    struct waiting *w;
    while ((w = at_home(engine, node)) != NULL) {
        if (engine->env.home == NULL || engine->closing) {
            call_refuse(leave(engine, w), engine->env.codes.lost);
            continue;
        }
        w->home = w->next_home = ENGINE_NO_HOME;
        w->ask = engine_now(engine) + ENGINE_FLUSH_MS;
        engine->env.home(engine->env.arg, w->call->id, w->number); /* may end it */
    }
}

void leader_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = *w->call->caller};
    char who[256] = "";
    engine->env.ranks(engine->env.arg, &sig, &engine->env.self, 1, false, who, sizeof who);
    snprintf(buf, cap, "group \"%s\" bootstrap: called as one of %u leaders: %s; no word yet of %s",
             w->call->id, w->call->leaders, who,
             w->home == ENGINE_NO_HOME ? "the server that decides"
                                       : engine->env.name(engine->env.arg, w->home));
}

void leader_close(struct engine *engine)
{
    struct waiting *w;
    while ((w = TAILQ_FIRST(&engine->membership->leads)) != NULL) {
        if (has_far_home(engine, w))
            send_lead(engine, w, engine->env.codes.closing, true); /* the others learn of it */
        call_refuse(leave(engine, w), engine->env.codes.closing);
    }
}
