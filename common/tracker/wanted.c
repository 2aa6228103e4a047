/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that a server above waits for, and of which nothing is known here yet: as long as the
 * participants here live, they may still call, so its question (WANTED) is not answered. When one
 * of them ends, nobody else says so. The question would come again after ENGINE_ASK_MS; so the last
 * ones are kept that long, and answered as soon as a participant here has ended.
 *
 * It is a shortcut only: what is forgotten here is asked again.
 */
#include "common/tracker/tracker.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct wanted *w)
{
    free(w->body);
    *w = (struct wanted){0};
}

void wanted_keep(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wanted *at = engine->wanted;
    for (struct wanted *w = at; w < engine->wanted + ENGINE_WANTED_MAX; w++) {
        if (w->body != NULL && w->from == from && w->len == len &&
            memcmp(w->body, body, len) == 0) {
            w->at = engine->env.now(engine->env.arg);
            return;
        }
        if (w->at < at->at)
            at = w; /* the oldest, or a free one */
    }
    drop(at);
    at->body = malloc(len + 1);
    if (at->body == NULL)
        return;
    memcpy(at->body, body, len);
    at->len = len;
    at->from = from;
    at->at = engine->env.now(engine->env.arg);
}

void wanted_forget(struct engine *engine, const void *sig, size_t siglen)
{
    for (struct wanted *w = engine->wanted; w < engine->wanted + ENGINE_WANTED_MAX; w++) {
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
    uint64_t now = engine->env.now(engine->env.arg);
    for (int i = 0; i < ENGINE_WANTED_MAX; i++) {
        struct wanted w = engine->wanted[i];
        engine->wanted[i] = (struct wanted){0};
        if (w.body != NULL && now < w.at + ENGINE_ASK_MS + ENGINE_FLUSH_MS)
            engine_wanted(engine, w.from, w.body, w.len); /* which keeps it if nobody has ended */
        free(w.body);
    }
}

void wanted_close(struct engine *engine)
{
    for (int i = 0; i < ENGINE_WANTED_MAX; i++)
        drop(&engine->wanted[i]);
}
