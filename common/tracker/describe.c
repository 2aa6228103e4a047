/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine shows of itself. */
#include "common/tracker/assembly.h"

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
    uint64_t now = engine->env.now(engine->env.arg);
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
            .left = t->deadline == 0    ? -1
                    : t->deadline > now ? (int64_t)(t->deadline - now)
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

static void show(const struct engine *engine, const char *about, uint64_t opened, uint64_t deadline,
                 void (*visit)(void *arg, const struct engine_wait *wait), void *arg)
{
    uint64_t now = engine->env.now(engine->env.arg);
    struct engine_wait wait = {about, now - opened, -1};
    if (deadline != 0)
        wait.left = deadline > now ? (int64_t)(deadline - now) : 0;
    visit(arg, &wait);
}

void engine_walk_waits(struct engine *engine,
                       void (*visit)(void *arg, const struct engine_wait *wait), void *arg)
{
    const struct assembly *a;
    const struct waiting *w;
    char text[1024];
    TAILQ_FOREACH (a, &engine->assemblies, all) {
        assembly_missing(engine, a, text, sizeof text);
        show(engine, text, a->opened, a->tracker != NULL ? a->tracker->deadline : a->deadline,
             visit, arg);
    }
    TAILQ_FOREACH (w, &engine->leads, all) {
        leader_describe(engine, w, text, sizeof text);
        if (w->home != engine->env.self) /* else it is in the assembly */
            show(engine, text, w->opened, w->deadline, visit, arg);
    }
    TAILQ_FOREACH (w, &engine->joins, all) {
        member_describe(engine, w, text, sizeof text);
        if (w->claim == NULL)
            show(engine, text, w->opened, w->deadline, visit, arg);
    }
}

struct engine_counts engine_counts(const struct engine *engine)
{
    struct engine_counts counts = engine->counts;
    const struct tracker *t;
    counts.remembered = 0;
    TAILQ_FOREACH (t, &engine->all, all)
        counts.remembered += t->state == TRACKER_IDLE;
    counts.kept = engine->count + cancel_count(engine) + engine->ndecided + quit_count(engine);
    const struct assembly *a;
    TAILQ_FOREACH (a, &engine->assemblies, all)
        counts.kept++;
    const struct assembly_failure *f;
    TAILQ_FOREACH (f, &engine->failures, all)
        counts.kept++;
    const struct claim *claim;
    TAILQ_FOREACH (claim, &engine->claims, all)
        counts.kept++;
    const struct waiting *w;
    TAILQ_FOREACH (w, &engine->joins, all)
        counts.kept++;
    TAILQ_FOREACH (w, &engine->leads, all)
        counts.kept++;
    return counts;
}
