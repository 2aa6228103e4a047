/* SPDX-License-Identifier: BSD-3-Clause */
/* Local calls. A call starts an operation, waits in the queue of its tracker until the operation
 * before it has ended, or is answered at once when it is a later try that others have ended.
 */
#include "common/tracker/frames.h"

#include "common/util/log.h"

void engine_call(struct engine *engine, struct engine_call *call)
{
    call_begin(engine, call, signature_kind(call->sig, call->siglen));
    if (call->gone != NULL && !engine->closing) { /* tries that name some of these fail now */
        procset_unite(&engine->without, call->gone);
        rollup_local_loss(engine);
    }
    struct tracker *t = engine->closing ? NULL : tracker_get(engine, call->sig, call->siglen);
    if (t == NULL) {
        call_refuse(call, engine->closing ? engine->env.codes.closing : engine->env.codes.invalid);
        return;
    }
    struct engine_call *before = cancel_meets(engine, t, true);
    if (before != NULL) {
        engine_call(engine, before);
        engine_call(engine, call); /* t may be gone */
        return;
    }
    struct tracker_past failed = {0};
    if (call->gone == NULL || call->op == 0)
        call->op = ++engine->numbers;
    t->failure.uncalled = 0;
    const struct skipped skipped =
        call->gone != NULL ? tries_skipped(engine, t, call) : (struct skipped){0};
    if (skipped.past != NULL) {
        log_debug("tracker: others have failed an earlier try for good");
        past_copy(&failed, skipped.past);
    } else if (call->gone != NULL && tries_names_lost(engine, t, &failed.gone)) {
        log_debug("tracker: a later try names some without whom another has gone on here");
        failed.status = engine->env.codes.lost;
    }
    if (failed.status != 0) {
        tracker_tidy(engine, t);
        call_fail(call, &failed);
        return;
    }
    if (t->call == NULL && t->queue == NULL)
        tracker_start(engine, t, call);
    else
        calls_add(&t->queue, call);
}

void engine_cancel_known(struct engine *engine, const void *sig, size_t siglen, bool lost)
{
    struct tracker *t = tracker_find(engine, sig, siglen);
    if (t != NULL && t->call == NULL && t->failure.uncalled > 0) { /* it has failed here already */
        t->failure.uncalled--;
        return;
    }
    struct engine_call *made = engine->closing ? NULL : cancel_call(engine, sig, siglen, lost);
    if (made != NULL)
        engine_call(engine, made);
}

void engine_cancel(struct engine *engine, const char *id, bool lost)
{
    const struct tracker *t = engine->closing ? NULL : cancel_find(engine, id, lost);
    if (t != NULL)
        engine_cancel_known(engine, t->sig, t->siglen, lost);
    else if (!engine->closing)
        cancel_keep(engine, id, lost);
}

struct tracker *calls_tracker(struct engine *engine, const void *sig, size_t siglen)
{
    struct tracker *t = tracker_get(engine, sig, siglen);
    struct engine_call *made = t != NULL ? cancel_meets(engine, t, false) : NULL;
    if (made == NULL)
        return t;
    engine_call(engine, made);
    return tracker_get(engine, sig, siglen);
}
