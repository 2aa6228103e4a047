/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of servers above for an operation of which this server knows nothing yet (WANTED).
 *
 * As long as the participants here live they may still call, so the question gets no answer. If a
 * participant ends, no other server can say so. The question would come again after ENGINE_ASK_MS.
 * So the last questions are kept that long, and are answered as soon as a participant here has
 * ended.
 *
 * This is a shortcut only: a question that is forgotten here is asked again.
 */
#include "common/tracker/recovery/recovery.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct wanted *w)
{
    free(w->body);
    *w = (struct wanted){0};
}

static void keep(struct engine *engine, const struct frame_in *frame)
{
    struct wanted *at = engine->recovery->wanted;
    for (struct wanted *w = at; w < engine->recovery->wanted + ENGINE_WANTED_MAX; w++) {
        if (w->body != NULL && w->from == frame->from && w->len == frame->len &&
            memcmp(w->body, frame->body, frame->len) == 0) {
            w->at = engine_now(engine);
            return;
        }
        if (w->at < at->at)
            at = w; /* the oldest, or a free one */
    }
    drop(at);
    at->body = malloc(frame->len + 1);
    if (at->body == NULL)
        return;
    memcpy(at->body, frame->body, frame->len);
    at->len = frame->len;
    at->from = frame->from;
    at->at = engine_now(engine);
}

/* A server above waits for an operation of which nothing is known here. @return whether there is
 * something to say: as long as participants here live, and have not gone on to a later try, they
 * may still call, and the servers below are asked. Otherwise no other server will report that. */
static bool has_news(struct engine *engine, struct tracker *t, uint64_t known, bool later_try)
{
    struct procset lost = {0};
    bool has = engine->env.local_status(engine->env.arg, &t->parts) != 0 ||
               (later_try ? tries_names_lost(engine, t, &lost)
                          : tracker_past_loss(engine, t, &lost) != 0) ||
               tracker_lost_below(engine, t);
    procset_free(&lost);
    if (!has)
        rollup_ask_on(engine, t, known, later_try);
    return has;
}

void wanted_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    uint64_t known = wire_get_u64(&frame->in);
    bool later_try = wire_get_u8(&frame->in) != 0;
    uint32_t slot = wire_end(&frame->in) ? tracker_slot_of(t, frame->from) : TREE_NONE;
    bool above = slot != TREE_NONE && slot != t->self && tree_below(&t->tree, slot, t->self);
    if (above && later_try && t->state == TRACKER_IDLE)
        /* What has ended with an earlier try is not called here again. */
        tries_tell(engine, t, frame->from, 0);
    bool news = t->state == TRACKER_IDLE && above && !tracker_is_late(engine, t, known);
    if (news && !has_news(engine, t, known, later_try)) {
        keep(engine, frame);
        news = false;
    }
    if (!news) {
        tracker_tidy(engine, t);
        return;
    }
    tracker_open(engine, t);
    t->later_try = later_try;
    engine->retries = engine->retries || later_try;
    if (!tracker_move(engine, t, TRACKER_CHILD))
        return;
    tracker_local_loss(engine, t);
    rollup_progress(engine, t);
}

void wanted_forget(struct engine *engine, const void *sig, size_t siglen)
{
    for (struct wanted *w = engine->recovery->wanted;
         w < engine->recovery->wanted + ENGINE_WANTED_MAX; w++) {
        struct wire_in in;
        size_t len;
        if (w->body == NULL)
            continue;
        wire_in_init(&in, w->body, w->len);
        const void *asked = wire_get_block(&in, &len);
        if (len == siglen && memcmp(asked, sig, len) == 0)
            drop(w);
    }
}

void wanted_local_loss(struct engine *engine)
{
    uint64_t now = engine_now(engine);
    for (int i = 0; i < ENGINE_WANTED_MAX; i++) {
        struct wanted w = engine->recovery->wanted[i];
        engine->recovery->wanted[i] = (struct wanted){0};
        if (w.body != NULL && now < w.at + ENGINE_ASK_MS + ENGINE_FLUSH_MS)
            engine->up->take(engine, w.from, FRAME_WANTED, w.body,
                             w.len); /* which keeps it if no process has ended */
        free(w.body);
    }
}

void wanted_close(struct engine *engine)
{
    for (int i = 0; i < ENGINE_WANTED_MAX; i++)
        drop(&engine->recovery->wanted[i]);
}
