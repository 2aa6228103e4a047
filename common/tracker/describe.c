/* What the engine shows of itself. */
#include "common/tracker/tracker.h"

#include <stdlib.h>

static uint32_t queue_length(const struct tracker *t)
{
    uint32_t n = 0;
    for (const struct engine_call *call = t->queue; call != NULL; call = call->next)
        n++;
    return n;
}

/* Those whose contribution is awaited here; none once all of our subtree went up. */
static uint32_t awaited(const struct tracker *t, uint32_t *nodes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (!t->slots[i].have && tree_below(&t->tree, t->self, i))
            nodes[n++] = t->nodes[i];
    return n;
}

void engine_walk(const struct engine *engine,
                 void (*visit)(void *arg, const struct engine_view *view), void *arg)
{
    uint64_t now = engine->env.now(engine->env.arg);
    const struct tracker *t;
    TAILQ_FOREACH (t, &engine->all, all) {
        uint32_t *missing = t->slots != NULL ? calloc(t->tree.n, sizeof *missing) : NULL;
        struct engine_view view = {
            .sig = t->sig,
            .siglen = t->siglen,
            .state = tracker_state_name(t->state),
            .age = now - t->opened,
            .in_state = now - t->since,
            .left = t->deadline == 0    ? -1
                    : t->deadline > now ? (int64_t)(t->deadline - now)
                                        : 0,
            .called = t->call != NULL,
            .queued = queue_length(t),
            .root = t->nodes[t->tree.root],
            .nservers = t->tree.n,
            .nmissing = missing != NULL ? awaited(t, missing) : 0,
            .missing = missing,
        };
        if (t->state != TRACKER_IDLE)
            visit(arg, &view);
        free(missing);
    }
}

struct engine_counts engine_counts(const struct engine *engine)
{
    struct engine_counts counts = engine->counts;
    const struct tracker *t;
    counts.remembered = 0;
    TAILQ_FOREACH (t, &engine->all, all)
        counts.remembered += t->state == TRACKER_IDLE;
    return counts;
}
