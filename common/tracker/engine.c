/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as a whole: what its layers are to each other, its start and its end; what happens
 * when a server or a process is lost, and when the time of a tracker has come.
 */
#include "common/tracker/frames.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

static void lose_server(struct engine *engine, struct tracker *t, uint64_t node)
{
    uint32_t slot = t->state == TRACKER_IDLE ? TREE_NONE : tracker_slot_of(t, (uint32_t)node);
    if (slot == TREE_NONE || slot == t->self || ranges_have(&t->lost, slot))
        return;
    tracker_lose(engine, t, slot);
    /* The root decides for all, also when the lost one's contribution is here. */
    if (t->self == t->tree.root)
        rollup_decide(engine, t, tracker_slot_loss(engine, t, slot));
    else
        rollup_progress(engine, t);
}

static void operations_lost(struct engine *engine, uint32_t node)
{
    tracker_each(engine, lose_server, node);
}

/* Writes the line about what is missing. */
static void missing(struct engine *engine, struct tracker *t, char *buf, size_t cap)
{
    if (t->state == TRACKER_DOUBT)
        doubt_missing(engine, t, buf, cap);
    else if (t->assembly != NULL)
        assembly_missing(engine, t->assembly, buf, cap);
    else
        tracker_missing(engine, t, buf, cap);
}

static void expire(struct engine *engine, struct tracker *t)
{
    char text[1024];
    if (t->self == t->tree.root) {
        missing(engine, t, text, sizeof text);
        log_error("timed out after %u s: %s", t->timeout, text);
        rollup_decide(engine, t, engine->env.codes.timeout);
        return;
    }
    signature_describe(t->sig, t->siglen, text, sizeof text);
    if (t->data.decided != 0)
        log_error("timed out after %u s: %s: node %u has not handed on all data", t->timeout, text,
                  tracker_node(t, tracker_bringer(t)));
    else
        log_error("timed out after %u s: %s: no word of node %u, which decides", t->timeout, text,
                  tracker_node(t, t->tree.root));
    tracker_give_up(engine, t, engine->env.codes.timeout);
}

/* Says that it waits. */
static void report(struct engine *engine, struct tracker *t, uint64_t now)
{
    struct ranges slots = {0};
    char text[1024];
    uint32_t n = 0, *nodes = NULL;
    missing(engine, t, text, sizeof text);
    if (t->state != TRACKER_DOUBT && t->assembly == NULL) {
        tracker_awaited(t, &slots);
        nodes = tracker_nodes(t, &slots, &n);
    }
    engine_stalled(engine, t->opened, now, text, nodes, n);
    ranges_free(&slots);
    free(nodes);
}

static void tick(void *arg, struct timer *due)
{
    struct engine *engine = arg;
    struct tracker *t = TIMER_OF(due, struct tracker, due);
    uint64_t now = engine_now(engine);
    if (!engine_is_due(engine, due, tracker_due_at(t)))
        return;
    if (t->state == TRACKER_IDLE) {
        tracker_free(engine, t); /* forgotten */
    } else if (t->settle != 0 && t->settle <= now) {
        tries_settle(engine, t, UINT64_MAX);
    } else if (t->deadline != 0 && t->deadline <= engine_clock(engine)) {
        expire(engine, t);
    } else if (t->say != 0 && t->say <= now) {
        rollup_up(engine, t);
        t->say = 0;
    } else if (t->flush != 0 && t->flush <= now) {
        t->flush = now + ENGINE_ASK_MS;
        t->flushed = true;
        rollup_up(engine, t);
        if (t->status == 0 || failure_waits(engine, t))
            rollup_ask(engine, t);
        if (t->state == TRACKER_SENT || t->status != 0)
            rollup_want(engine, t, tracker_bringer(t)); /* one that is gone is noticed by that */
        if (t->state == TRACKER_DOUBT)
            doubt_ask(engine, t);
    } else {
        t->report += engine->env.stall * 1000ull;
        if (t->self != t->tree.root && t->state != TRACKER_DOUBT)
            return;
        report(engine, t, now);
    }
}

/* Tells the other servers of an operation that ours will not take part any more. */
static void take_leave(struct engine *engine, struct tracker *t, uint64_t unused)
{
    int32_t status = engine->env.codes.closing;
    (void)unused;
    if (t->state != TRACKER_EARLY && t->state != TRACKER_GATHER)
        return;
    tracker_gone(engine, t, engine->env.self);
    if (t->self == t->tree.root) {
        rollup_decide(engine, t, status);
        return;
    }
    rollup_own(t, status);
    tracker_fail(t, status);
    rollup_up(engine, t);
    tracker_give_up(engine, t, status);
}

static void operations_leave(struct engine *engine)
{
    tracker_each(engine, take_leave, 0);
}

/* Answers all of its calls, and frees it. */
static void end(struct engine *engine, struct tracker *t, int32_t status)
{
    const struct engine_result result = {.status = status};
    struct engine_call *calls = t->call != NULL ? t->call : t->queue;
    if (t->call != NULL)
        t->call->next = t->queue;
    tracker_free(engine, t);
    calls_done(&calls, &result);
}

static void operations_close(struct engine *engine)
{
    struct tracker *t;
    while ((t = TAILQ_FIRST(&engine->all)) != NULL)
        end(engine, t, engine->env.codes.closing);
}

static void forget(struct engine *engine, struct tracker *t, uint64_t nspace)
{
    if (procset_has_of(&t->parts.members, (const char *)(uintptr_t)nspace))
        end(engine, t, engine->env.codes.lost);
}

static void operations_forget(struct engine *engine, const char *nspace)
{
    procset_drop(&engine->without, nspace);
    tracker_each(engine, forget, (uintptr_t)nspace);
}

/* What a part of the engine does when something happens to servers, processes, or the engine. */
struct part {
    void (*lost)(struct engine *engine, uint32_t node); /* a server is gone */
    void (*local_loss)(struct engine *engine);          /* a participant here has ended */
    void (*close)(struct engine *engine);
    void (*forget)(struct engine *engine, const char *nspace); /* a namespace has ended */
};

/* Bottom to top; what is left over ends last. */
static const struct part parts[] = {
    {operations_lost, rollup_local_loss, operations_leave, NULL},
    {assembly_lost, NULL, assembly_close, NULL},
    {leader_lost, NULL, leader_close, NULL},
    {claim_lost, claim_local_loss, member_close, claim_forget},
    {NULL, NULL, cancel_close, NULL},
    {decided_lost, NULL, decided_close, decided_forget},
    {NULL, NULL, operations_close, operations_forget},
};

static const struct engine_hooks hooks = {
    .due = tick,
    .take = engine_take,
    .ready = assembly_ready,
    .detach = assembly_detach,
    .told = assembly_told,
    .orphan = doubt_progress,
    .failed = tries_end,
    .missed = cancel_miss,
    .ask = doubt_members,
};

/* The engine with what its layers keep. */
struct whole {
    struct engine engine;
    struct membership membership;
    struct recovery recovery;
};

struct engine *engine_new(const struct engine_env *env)
{
    struct whole *whole = calloc(1, sizeof *whole);
    if (whole == NULL)
        return NULL;
    struct engine *engine = &whole->engine;
    engine->env = *env;
    engine->next_id = env->ids;
    engine->up = &hooks;
    TAILQ_INIT(&engine->all);
    TAILQ_INIT(&engine->decided);
    membership_open(engine, &whole->membership);
    engine->recovery = &whole->recovery;
    TAILQ_INIT(&engine->recovery->cancelled);
    engine->nbuckets = ENGINE_BUCKETS;
    engine->buckets = calloc(engine->nbuckets, sizeof *engine->buckets);
    if (engine->buckets == NULL) {
        free(whole);
        return NULL;
    }
    return engine;
}

int engine_shape(struct engine *engine, const uint32_t *parents)
{
    uint32_t n = engine->env.nnodes, *all = calloc(n, sizeof *all);
    int rc = all != NULL ? tree_shape_init(&engine->shape, parents, n) : -1;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        all[i] = i;
    engine->whole = (struct tree){.n = n};
    if (rc == 0)
        rc = tree_follow(&engine->whole, &engine->shape, all);
    if (rc != 0)
        tree_shape_free(&engine->shape);
    free(all);
    return rc;
}

void engine_local_loss(struct engine *engine)
{
    for (const struct part *part = parts; part < parts + sizeof parts / sizeof *parts; part++)
        if (part->local_loss != NULL)
            part->local_loss(engine);
}

static void lose(struct engine *engine, uint32_t node, struct ranges *how)
{
    if (engine_is_lost(engine, node) || ranges_put(how, node) != 0)
        return;
    for (const struct part *part = parts; part < parts + sizeof parts / sizeof *parts; part++)
        if (part->lost != NULL)
            part->lost(engine, node);
}

void engine_lost(struct engine *engine, uint32_t node)
{
    lose(engine, node, &engine->lost);
}

void engine_left(struct engine *engine, uint32_t node)
{
    lose(engine, node, &engine->left);
}

void engine_close(struct engine *engine)
{
    engine->closing = true;
    for (const struct part *part = parts; part < parts + sizeof parts / sizeof *parts; part++)
        if (part->close != NULL)
            part->close(engine);
}

void engine_nspace_ended(struct engine *engine, const char *nspace)
{
    for (const struct part *part = parts; part < parts + sizeof parts / sizeof *parts; part++)
        if (part->forget != NULL)
            part->forget(engine, nspace);
}

void engine_free(struct engine *engine)
{
    if (engine == NULL)
        return;
    engine_close(engine);
    tree_free(&engine->whole);
    tree_shape_free(&engine->shape);
    ranges_free(&engine->lost);
    ranges_free(&engine->left);
    ranges_free(&engine->met);
    procset_free(&engine->without);
    free(engine->buckets);
    free(engine); /* the first member of struct whole */
}
