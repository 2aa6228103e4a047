/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's entry points: local calls, losses, time. frames.c has those for frames. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct engine *engine_new(const struct engine_env *env)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        return NULL;
    engine->env = *env;
    engine->next_id = env->ids;
    TAILQ_INIT(&engine->all);
    TAILQ_INIT(&engine->assemblies);
    TAILQ_INIT(&engine->failures);
    TAILQ_INIT(&engine->joins);
    TAILQ_INIT(&engine->leads);
    TAILQ_INIT(&engine->claims);
    TAILQ_INIT(&engine->quits);
    TAILQ_INIT(&engine->cancelled);
    TAILQ_INIT(&engine->decided);
    engine->nbuckets = ENGINE_BUCKETS;
    engine->buckets = calloc(engine->nbuckets, sizeof *engine->buckets);
    if (engine->buckets == NULL) {
        free(engine);
        return NULL;
    }
    return engine;
}

void engine_ids(struct engine *engine, uint64_t ids, uint32_t step)
{
    engine->next_id = ids;
    engine->env.id_step = step;
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

static void refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call->done(call, &result);
}

void tracker_pay(struct engine_call *call, struct tracker_debt *debt)
{
    struct engine_result result = {.status = debt->status,
                                   .gone = debt->gone.nparts > 0 ? &debt->gone : NULL};
    call->done(call, &result);
    procset_free(&debt->gone);
}

void tracker_start(struct engine *engine, struct tracker *t, struct engine_call *call)
{
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (!tracker_move(engine, t, TRACKER_CALL)) {
        refuse(call, engine->env.codes.invalid);
        return;
    }
    wanted_forget(engine, t->sig, t->siglen);
    t->call = call;
    t->tried = call->op;
    t->again = t->again || call->gone != NULL;
    engine->retries = engine->retries || t->again;
    call->next = NULL;
    t->number = ++engine->numbers;
    t->floor = engine->generations;
    tracker_arm(engine, t, call->timeout, call->timeout * 1000ull - call->early);
    if (call->status != 0)
        tracker_gone_here(engine, t);
    rollup_own(t, call->status);
    rollup_progress(engine, t);
}

void engine_call(struct engine *engine, struct engine_call *call)
{
    struct tracker *t = engine->closing ? NULL : tracker_get(engine, call->sig, call->siglen);
    if (t == NULL) {
        refuse(call, engine->closing ? engine->env.codes.closing : engine->env.codes.invalid);
        return;
    }
    if (cancel_meets(engine, t, true)) {
        engine_call(engine, call); /* t may be gone */
        return;
    }
    struct tracker_debt owed;
    if (call->gone == NULL || call->op == 0)
        call->op = ++engine->numbers;
    struct tracker *other = call->gone != NULL ? tries_owing(engine, t, call) : NULL;
    if (other != NULL && tracker_owed(other, &owed)) {
        log_debug("tracker: others have failed without some of those that are lost now");
        tracker_tidy(engine, t);
        tracker_tidy(engine, other);
        tracker_pay(call, &owed);
        return;
    }
    if (tracker_owed(t, &owed)) {
        log_debug("tracker: a late call is answered with the status that the others got");
        t->tried = call->op;
        tracker_pay(call, &owed);
        return;
    }
    if (t->call == NULL && t->queue == NULL) {
        tracker_start(engine, t, call);
        return;
    }
    struct engine_call **end = &t->queue;
    while (*end != NULL)
        end = &(*end)->next;
    call->next = NULL;
    *end = call;
}

static void lose_local(struct engine *engine, struct tracker *t, uint64_t unused)
{
    (void)unused;
    if (t->state != TRACKER_EARLY || t->own ||
        engine->env.local_status(engine->env.arg, &t->parts) == 0)
        return;
    tracker_local_loss(engine, t);
    rollup_progress(engine, t);
}

void engine_local_loss(struct engine *engine)
{
    tracker_each(engine, lose_local, 0);
    wanted_local_loss(engine);
    member_local_loss(engine);
}

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

static void lose(struct engine *engine, uint32_t node, struct ranges *how)
{
    if (engine_is_lost(engine, node) || ranges_put(how, node) != 0)
        return;
    tracker_each(engine, lose_server, node);
    decided_lost(engine, node);
    assembly_lost(engine, node);
    leader_lost(engine, node);
    member_lost(engine, node);
}

void engine_lost(struct engine *engine, uint32_t node)
{
    lose(engine, node, &engine->lost);
}

void engine_left(struct engine *engine, uint32_t node)
{
    lose(engine, node, &engine->left);
}

static void expire(struct engine *engine, struct tracker *t)
{
    char text[1024];
    if (t->self == t->tree.root) {
        if (t->assembly != NULL)
            assembly_missing(engine, t->assembly, text, sizeof text);
        else
            tracker_missing(engine, t, text, sizeof text);
        log_error("timed out after %u s: %s", t->timeout, text);
        rollup_decide(engine, t, engine->env.codes.timeout);
        return;
    }
    signature_describe(t->sig, t->siglen, text, sizeof text);
    log_error("timed out after %u s: %s: no word of node %u, which decides", t->timeout, text,
              tracker_node(t, t->tree.root));
    tracker_give_up(engine, t, engine->env.codes.timeout);
}

static void tick(struct engine *engine, struct tracker *t, uint64_t now)
{
    char text[1024];
    if (t->state == TRACKER_IDLE) {
        tracker_free(engine, t); /* forgotten */
    } else if (t->settle != 0 && t->settle <= now) {
        tries_settle(engine, t);
    } else if (t->deadline != 0 && t->deadline <= now) {
        expire(engine, t);
    } else if (t->say != 0 && t->say <= now) {
        rollup_up(engine, t);
        t->say = 0;
    } else if (t->flush != 0 && t->flush <= now) {
        t->flush = now + ENGINE_ASK_MS;
        t->flushed = true;
        rollup_up(engine, t);
        rollup_ask(engine, t);
        if (t->state == TRACKER_SENT)
            rollup_ping(engine, t);
        if (t->state == TRACKER_DOUBT)
            doubt_ask(engine, t);
    } else {
        t->report += engine->env.stall * 1000ull;
        if (t->self != t->tree.root && t->state != TRACKER_DOUBT)
            return;
        if (t->state == TRACKER_DOUBT)
            doubt_missing(engine, t, text, sizeof text);
        else if (t->assembly != NULL)
            assembly_missing(engine, t->assembly, text, sizeof text);
        else
            tracker_missing(engine, t, text, sizeof text);
        engine_stalled(engine, t->opened, now, text);
    }
}

int64_t engine_next(const struct engine *engine)
{
    const struct timer *first = timers_first(&engine->timers);
    uint64_t at = first != NULL ? first->at : UINT64_MAX, now = engine->env.now(engine->env.arg);
    const uint64_t others[] = {assembly_next(engine), leader_next(engine), member_next(engine),
                               quit_next(engine),     cancel_next(engine), decided_next(engine)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i] < at)
            at = others[i];
    return at == UINT64_MAX ? -1 : at <= now ? 0 : (int64_t)(at - now);
}

static void tick_all(struct engine *engine, uint64_t now)
{
    struct timer *first;
    while ((first = timers_first(&engine->timers)) != NULL && first->at <= now) {
        struct tracker *t = (struct tracker *)((char *)first - offsetof(struct tracker, due));
        uint64_t at = tracker_due_at(t);
        if (at <= now)
            tick(engine, t, now); /* which may free it, and others */
        else
            timers_set(&engine->timers, first, at);
    }
}

void engine_tick(struct engine *engine)
{
    uint64_t now = engine->env.now(engine->env.arg);
    tick_all(engine, now);
    while (assembly_tick(engine, now) || leader_tick(engine, now) || member_tick(engine, now) ||
           quit_tick(engine, now) || cancel_tick(engine, now) || decided_tick(engine, now))
        ;
}

uint64_t engine_context_id(struct engine *engine, uint32_t flags)
{
    if ((flags & ENGINE_WANT_CONTEXT_ID) == 0)
        return 0;
    engine->next_id += engine->env.id_step;
    return engine->next_id;
}

uint32_t engine_count(const struct engine *engine)
{
    return engine->count;
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

void engine_close(struct engine *engine)
{
    struct tracker *t;
    engine->closing = true;
    tracker_each(engine, take_leave, 0);
    assembly_close(engine);
    leader_close(engine);
    member_close(engine);
    quit_close(engine);
    wanted_close(engine);
    cancel_close(engine);
    decided_close(engine);
    while ((t = TAILQ_FIRST(&engine->all)) != NULL) {
        struct engine_call *call = t->call, *queue = t->queue;
        tracker_free(engine, t);
        if (call != NULL)
            refuse(call, engine->env.codes.closing);
        while (queue != NULL) {
            struct engine_call *next = queue->next;
            refuse(queue, engine->env.codes.closing);
            queue = next;
        }
    }
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
    timers_free(&engine->timers);
    free(engine->buckets);
    free(engine);
}
