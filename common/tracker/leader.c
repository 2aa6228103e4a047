/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaders of a bootstrap, on their own server. Each knows the group's id and how many leaders there
 * are, so they meet at the id's home, a server that everybody can compute: home.c.
 *
 * LEAD: str id, u64 number of the sender's call, u32 library, u32 leaders (0: the call is taken
 *       back, and nothing follows), u32 timeout in s (0: none), u64 ms left of it, the leader, i32
 *       status, u32 flags, u32 1, one entry
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call->done(call, &result);
}

static void put_head(struct engine *engine, struct wire_out *out, const struct waiting *w,
                     uint32_t leaders)
{
    wire_put_u8(out, FRAME_LEAD);
    wire_put_str(out, w->call->id);
    wire_put_u64(out, w->number);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, leaders);
}

static void send_lead(struct engine *engine, const struct waiting *w, int32_t status)
{
    const struct engine_call *call = w->call;
    struct engine_entry entry = {0, call->data, call->len, call->added, call->addedlen};
    struct wire_out out = {0};
    entry_acquaint(engine, w->home, &entry);
    put_head(engine, &out, w, call->leaders);
    wire_put_u32(&out, call->timeout);
    wire_put_u64(&out, call->timeout * 1000ull);
    procset_write(call->caller, &out);
    wire_put_i32(&out, status);
    wire_put_u32(&out, call->flags);
    wire_put_u32(&out, 1);
    entry_put(&out, &entry);
    assembly_send(engine, w->home, &out);
}

void engine_lead(struct engine *engine, struct engine_call *call)
{
    const struct engine_env *env = &engine->env;
    struct waiting *w = calloc(1, sizeof *w);
    if (w == NULL || engine->closing) {
        free(w);
        refuse(call, engine->closing ? env->codes.closing : env->codes.lost);
        return;
    }
    w->call = call;
    w->home = ENGINE_NO_HOME;
    w->number = ++engine->numbers;
    w->opened = engine->env.now(engine->env.arg);
    w->ask = w->opened + ENGINE_ASK_MS;
    if (call->timeout > 0)
        w->deadline = w->opened + call->timeout * 1000ull + ENGINE_GRACE_MS;
    TAILQ_INSERT_TAIL(&engine->leads, w, all);
    if (env->home != NULL)
        env->home(env->arg, call->id, w->number); /* may end it */
    else
        engine_home(engine, w->number,
                    (uint32_t)(signature_hash(call->id, strlen(call->id)) % env->nnodes));
}

/* Whether somebody else is to decide, who may be lost. */
static bool has_far_home(const struct engine *engine, const struct waiting *w)
{
    return w->home != engine->env.self && w->home != ENGINE_NO_HOME;
}

/* Only its home knows whether a call belongs to an operation by now, and says so: the call's own
 * server forgets one that is nowhere else. */
bool leader_withdraw(struct engine *engine, struct engine_call *call)
{
    struct waiting *w;
    struct wire_out out = {0};
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->call == call)
            break;
    if (w == NULL)
        return false;
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
    TAILQ_REMOVE(&engine->leads, w, all);
    free(w);
    return true;
}

void leader_end(struct engine *engine, uint32_t home, uint64_t number, struct waiting_list *ended)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->number == number && w->home == home) {
            TAILQ_REMOVE(&engine->leads, w, all);
            TAILQ_INSERT_TAIL(ended, w, all);
            return;
        }
}

/* Answers one call that is decided without the home's word. */
static void give_up(struct engine *engine, struct waiting *w, int32_t status)
{
    struct engine_call *call = w->call;
    TAILQ_REMOVE(&engine->leads, w, all);
    free(w);
    refuse(call, status);
}

void engine_home(struct engine *engine, uint64_t call, uint32_t node)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->number == call && w->home == ENGINE_NO_HOME)
            break;
    if (w == NULL)
        return; /* it was taken back, or its deadline has passed */
    if (node == ENGINE_NO_HOME || engine_is_lost(engine, node)) {
        give_up(engine, w, engine->env.codes.lost);
        return;
    }
    w->home = node;
    send_lead(engine, w, w->call->status); /* may end it */
}

/* The first call whose home is that server. */
static struct waiting *at_home(const struct engine *engine, uint32_t node)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->leads, all)
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
            give_up(engine, w, engine->env.codes.lost);
            continue;
        }
        w->home = ENGINE_NO_HOME;
        engine->env.home(engine->env.arg, w->call->id, w->number); /* may end it */
    }
}

/* ---- time ---- */

void leader_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = *w->call->caller};
    char who[256] = "";
    engine->env.missing(engine->env.arg, &sig, &engine->env.self, 1, who, sizeof who);
    snprintf(buf, cap, "group \"%s\" bootstrap: called as one of %u leaders: %s; no word yet of %s",
             w->call->id, w->call->leaders, who,
             w->home == ENGINE_NO_HOME ? "who decides"
                                       : engine->env.name(engine->env.arg, w->home));
}

uint64_t leader_next(const struct engine *engine)
{
    const struct waiting *w;
    uint64_t at = home_next(engine);
    TAILQ_FOREACH (w, &engine->leads, all) {
        if (w->deadline != 0 && w->deadline < at)
            at = w->deadline;
        if (has_far_home(engine, w) && w->ask < at)
            at = w->ask;
    }
    return at;
}

bool leader_tick(struct engine *engine, uint64_t now)
{
    struct waiting *w;
    if (home_tick(engine, now))
        return true;
    TAILQ_FOREACH (w, &engine->leads, all)
        if (w->deadline != 0 && w->deadline <= now) {
            log_error("timed out after %u s: group \"%s\" bootstrap: no word of node %s, which "
                      "decides",
                      w->call->timeout, w->call->id,
                      w->home == ENGINE_NO_HOME ? "(which one is not known yet)"
                                                : engine->env.name(engine->env.arg, w->home));
            give_up(engine, w, engine->env.codes.timeout);
            return true;
        }
    TAILQ_FOREACH (w, &engine->leads, all)
        if (has_far_home(engine, w) && w->ask <= now) {
            w->ask = now + ENGINE_ASK_MS;
            assembly_ping(engine, w->home); /* may tell us that it is lost */
            return true;
        }
    return false;
}

void leader_close(struct engine *engine)
{
    struct waiting *w;
    while ((w = TAILQ_FIRST(&engine->leads)) != NULL) {
        if (has_far_home(engine, w))
            send_lead(engine, w, engine->env.codes.closing); /* the others learn of it */
        give_up(engine, w, engine->env.codes.closing);
    }
    home_close(engine);
}
