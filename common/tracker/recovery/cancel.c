/* SPDX-License-Identifier: BSD-3-Clause */
/* Constructs that libpmix has ended on this server before it handed them up.
 *
 * libpmix tells the id only. What it has ended is a local call that has failed, so the engine makes
 * that failed call as soon as it knows the signature. It learns the signature from a tracker that
 * waits for this server, from a contribution or a question of another server, or from the answers
 * to CANCEL, which asks all servers.
 */
#include "common/tracker/recovery/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_TIMEOUT_S = 60 /* of the failed call: for the decider's word */ };

/* One whose signature is not known yet. */
struct cancelled {
    TAILQ_ENTRY(cancelled) all;
    struct timer due; /* to be forgotten */
    char id[PROCSET_NAME_MAX + 1];
    bool lost; /* a participant of it here has ended */
};

static bool is_construct(const struct engine *engine, const struct tracker *t, const char *id,
                         bool lost)
{
    return coll_traits(t->parts.kind)->adds && strcmp(t->parts.id, id) == 0 &&
           (!lost || engine->env.local_status(engine->env.arg, &t->parts) != 0);
}

static void forget(struct engine *engine, struct cancelled *c)
{
    TAILQ_REMOVE(&engine->recovery->cancelled, c, all);
    timer_stop(&c->due);
    free(c);
}

static void old_enough(void *arg, struct timer *due)
{
    forget(arg, TIMER_OF(due, struct cancelled, due));
}

static void done(struct engine_call *call, const struct engine_result *result)
{
    (void)result; /* PMIx's library has answered */
    free(call->sig);
    free(call);
}

/* @param lost as in engine_cancel(); a process that ended since was told before, and is not why */
struct engine_call *cancel_call(const struct engine *engine, const void *sig, size_t siglen,
                                bool lost)
{
    struct engine_call *made = calloc(1, sizeof *made);
    void *bytes = malloc(siglen);
    struct signature parts;
    if (made == NULL || bytes == NULL || signature_read(&parts, sig, siglen) != 0) {
        free(made);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, sig, siglen);
    *made = (struct engine_call){
        .sig = bytes, .siglen = siglen, .timeout = CALL_TIMEOUT_S, .done = done};
    made->status = lost ? engine->env.local_status(engine->env.arg, &parts) : 0;
    if (made->status == 0) /* all of ours lived: they have waited too long */
        made->status = engine->env.codes.timeout;
    signature_free(&parts);
    return made;
}

static struct cancelled *find(const struct engine *engine, const struct tracker *t)
{
    struct cancelled *c;
    TAILQ_FOREACH (c, &engine->recovery->cancelled, all)
        if (is_construct(engine, t, c->id, c->lost))
            break;
    return c;
}

void cancel_miss(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct cancelled *c = find(engine, t);
    if (c != NULL) {
        forget(engine, c);
        return;
    }
    t->failure.uncalled++;
    if (engine->env.missed != NULL)
        engine->env.missed(engine->env.arg, t->sig, t->siglen, result);
}

struct engine_call *cancel_meets(struct engine *engine, const struct tracker *t, bool local)
{
    struct cancelled *c = local || t->call == NULL ? find(engine, t) : NULL;
    if (c == NULL)
        return NULL;
    struct engine_call *made = cancel_call(engine, t->sig, t->siglen, c->lost);
    forget(engine, c);
    return made;
}

const struct tracker *cancel_find(const struct engine *engine, const char *id, bool lost)
{
    const struct tracker *t;
    /* What has failed already was called for before what is under way. */
    for (int over = 1; over >= 0; over--)
        TAILQ_FOREACH (t, &engine->all, all)
            if (t->call == NULL && (over ? t->failure.uncalled > 0 : t->state == TRACKER_EARLY) &&
                is_construct(engine, t, id, lost))
                return t;
    return NULL;
}

void cancel_keep(struct engine *engine, const char *id, bool lost)
{
    struct cancelled *c = calloc(1, sizeof *c);
    if (c == NULL)
        return;
    timer_init(&c->due, engine->env.timers, old_enough, engine);
    timer_after(&c->due, ENGINE_REMEMBER_MS);
    snprintf(c->id, sizeof c->id, "%s", id);
    c->lost = lost;
    TAILQ_INSERT_TAIL(&engine->recovery->cancelled, c, all);
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_CANCEL);
    wire_put_str(&out, id);
    engine->env.say(engine->env.arg, &out);
    wire_out_free(&out);
}

void cancel_take(struct engine *engine, struct tracker *unused, struct frame_in *frame)
{
    struct tracker *t;
    char id[PROCSET_NAME_MAX + 1];
    (void)unused;
    wire_get_str(&frame->in, id, sizeof id);
    if (!wire_end(&frame->in))
        return;
    TAILQ_FOREACH (t, &engine->all, all) {
        uint32_t slot = tracker_slot_of(t, frame->from);
        if (t->call != NULL && slot != TREE_NONE && slot != t->self &&
            is_construct(engine, t, id, false))
            rollup_want(engine, t, slot);
    }
}

void cancel_close(struct engine *engine)
{
    struct cancelled *c;
    while ((c = TAILQ_FIRST(&engine->recovery->cancelled)) != NULL)
        forget(engine, c);
}
