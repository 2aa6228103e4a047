/* SPDX-License-Identifier: BSD-3-Clause */
/* Constructs that PMIx's library has ended on this server before they were handed up.
 *
 * It says no more than the id. What it ended is a local call that has failed, so such a call is
 * made as soon as the signature is known: of a tracker that waits for ours, or when somebody else
 * contributes, asks, or answers the question that goes to all.
 *
 * CANCEL: str id
 */
#include "common/tracker/tracker.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_TIMEOUT_S = 60 /* of the failed call: for the word of who decides */ };

/* One whose signature is not known yet. */
struct cancelled {
    TAILQ_ENTRY(cancelled) all;
    char id[PROCSET_NAME_MAX + 1];
    bool lost;   /* somebody here has ended that it is with */
    uint64_t at; /* ms */
};

static bool is_construct(const struct engine *engine, const struct tracker *t, const char *id,
                         bool lost)
{
    return t->parts.kind == COLL_CONSTRUCT && strcmp(t->parts.id, id) == 0 &&
           (!lost || engine->env.local_status(engine->env.arg, &t->parts) != 0);
}

static void forget(struct engine *engine, struct cancelled *c)
{
    TAILQ_REMOVE(&engine->cancelled, c, all);
    free(c);
}

static void done(struct engine_call *call, const struct engine_result *result)
{
    (void)result; /* PMIx's library has answered */
    free(call->sig);
    free(call);
}

/* Makes the failed call. Trackers may be gone afterwards.
 * @param lost as in engine_cancel(); who ended since was told before, and is not why */
void engine_cancel_known(struct engine *engine, const void *from, size_t siglen, bool lost)
{
    struct engine_call *made = engine->closing ? NULL : calloc(1, sizeof *made);
    void *bytes = malloc(siglen);
    struct signature sig;
    if (made == NULL || bytes == NULL || signature_read(&sig, from, siglen) != 0) {
        free(made);
        free(bytes);
        return;
    }
    memcpy(bytes, from, siglen);
    *made = (struct engine_call){
        .sig = bytes, .siglen = siglen, .timeout = CALL_TIMEOUT_S, .done = done};
    made->status = lost ? engine->env.local_status(engine->env.arg, &sig) : 0;
    if (made->status == 0) /* all of ours lived: they have waited too long */
        made->status = engine->env.codes.timeout;
    signature_free(&sig);
    engine_call(engine, made);
}

bool cancel_meets(struct engine *engine, struct tracker *t, bool local)
{
    struct cancelled *c;
    TAILQ_FOREACH (c, &engine->cancelled, all)
        if ((local || t->call == NULL) && is_construct(engine, t, c->id, c->lost))
            break;
    if (c == NULL)
        return false;
    bool lost = c->lost;
    forget(engine, c);
    engine_cancel_known(engine, t->sig, t->siglen, lost);
    return true;
}

void engine_cancel(struct engine *engine, const char *id, bool lost)
{
    struct tracker *t;
    struct cancelled *c = engine->closing ? NULL : calloc(1, sizeof *c);
    if (c == NULL)
        return;
    /* What has failed already was called for before what is under way. */
    for (int owed = 1; owed >= 0; owed--)
        TAILQ_FOREACH (t, &engine->all, all)
            if (t->call == NULL && (owed ? t->failure.nowed > 0 : t->state == TRACKER_EARLY) &&
                is_construct(engine, t, id, lost)) {
                free(c);
                engine_cancel_known(engine, t->sig, t->siglen, lost);
                return;
            }
    snprintf(c->id, sizeof c->id, "%s", id);
    c->lost = lost;
    c->at = engine->env.now(engine->env.arg);
    TAILQ_INSERT_TAIL(&engine->cancelled, c, all);
    for (uint32_t node = 0; node < engine->env.nnodes; node++) {
        struct wire_out out = {0};
        if (node == engine->env.self || engine_is_lost(engine, node))
            continue;
        wire_put_u8(&out, FRAME_CANCEL);
        wire_put_str(&out, id);
        engine->env.send(engine->env.arg, node, &out, NULL);
        wire_out_free(&out);
    }
}

void engine_cancelled(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    struct tracker *t;
    char id[PROCSET_NAME_MAX + 1];
    wire_in_init(&in, body, len);
    wire_get_str(&in, id, sizeof id);
    if (!wire_end(&in) || engine->closing)
        return;
    TAILQ_FOREACH (t, &engine->all, all) {
        uint32_t slot = tracker_slot_of(t, from);
        if (t->call != NULL && slot != TREE_NONE && slot != t->self &&
            is_construct(engine, t, id, false))
            rollup_want(engine, t, slot);
    }
}

uint32_t cancel_count(const struct engine *engine)
{
    const struct cancelled *c;
    uint32_t n = 0;
    TAILQ_FOREACH (c, &engine->cancelled, all)
        n++;
    return n;
}

uint64_t cancel_next(const struct engine *engine)
{
    const struct cancelled *c = TAILQ_FIRST(&engine->cancelled); /* the oldest */
    return c != NULL ? c->at + ENGINE_REMEMBER_MS : UINT64_MAX;
}

bool cancel_tick(struct engine *engine, uint64_t now)
{
    struct cancelled *c = TAILQ_FIRST(&engine->cancelled);
    if (c == NULL || c->at + ENGINE_REMEMBER_MS > now)
        return false;
    forget(engine, c);
    return true;
}

void cancel_close(struct engine *engine)
{
    struct cancelled *c;
    while ((c = TAILQ_FIRST(&engine->cancelled)) != NULL)
        forget(engine, c);
}
