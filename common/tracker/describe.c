/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine shows of itself. */
#include "common/tracker/frames.h"

#include <stdlib.h>

static uint32_t queue_length(const struct tracker *t)
{
    uint32_t n = 0;
    for (const struct engine_call *call = t->queue; call != NULL; call = call->next)
        n++;
    return n;
}

void engine_walk(const struct engine *engine,
                 void (*visit)(void *arg, const struct engine_view *view), void *arg)
{
    uint64_t now = engine_now(engine);
    const uint64_t clock = engine_clock(engine);
    const struct tracker *t;
    TAILQ_FOREACH (t, &engine->all, all) {
        struct ranges slots = {0};
        uint32_t nmissing = 0;
        if (t->state == TRACKER_IDLE)
            continue;
        tracker_awaited(t, &slots);
        uint32_t *missing = tracker_nodes(t, &slots, &nmissing);
        struct engine_view view = {
            .sig = t->sig,
            .siglen = t->siglen,
            .state = tracker_state_name(t->state),
            .age = now - t->opened,
            .in_state = now - t->since,
            .left = t->deadline == 0      ? -1
                    : t->deadline > clock ? (int64_t)(t->deadline - clock)
                                          : 0,
            .called = t->call != NULL,
            .queued = queue_length(t),
            .root = tracker_node(t, t->tree.root),
            .nservers = t->tree.n,
            .nmissing = nmissing,
            .missing = missing,
        };
        visit(arg, &view);
        ranges_free(&slots);
        free(missing);
    }
}

const struct tally *engine_tally(const struct engine *engine)
{
    return &engine->tally;
}

struct engine_counts engine_counts(const struct engine *engine)
{
    struct engine_counts counts = engine->counts;
    const struct tracker *t;
    counts.remembered = 0;
    TAILQ_FOREACH (t, &engine->all, all)
        counts.remembered += t->state == TRACKER_IDLE && t->failure.at != 0;
    counts.trackers = engine->count;
    return counts;
}
