/* The engine's entry points: local calls, frames, lost servers, time. */
#include "common/tracker/tracker.h"

#include "common/util/log.h"

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
    for (int i = 0; i < ENGINE_BUCKETS; i++)
        LIST_INIT(&engine->buckets[i]);
    return engine;
}

static void refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call->done(call, &result);
}

void tracker_start(struct engine *engine, struct tracker *t, struct engine_call *call)
{
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (t->slots == NULL || !tracker_move(engine, t, TRACKER_CALL)) {
        refuse(call, engine->env.codes.invalid);
        return;
    }
    t->call = call;
    call->next = NULL;
    t->number = ++engine->numbers;
    tracker_arm(engine, t, call->timeout);
    struct engine_entry own = {t->self, call->status, call->flags, call->data, call->len};
    rollup_put(t, &own);
    rollup_progress(engine, t);
}

void engine_call(struct engine *engine, struct engine_call *call)
{
    struct tracker *t = engine->closing ? NULL : tracker_get(engine, call->sig, call->siglen);
    if (t == NULL) {
        refuse(call, engine->closing ? engine->env.codes.closing : engine->env.codes.invalid);
        return;
    }
    if (t->failure.owed > 0 && t->call == NULL) {
        t->failure.owed--;
        log_debug("tracker: a late call is answered with the status that the others got");
        refuse(call, t->failure.status);
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

/* Whether a contribution belongs to an operation that has failed here already. Its sender repeats
 * the generation of the last failure that it knows, and it learns of ours before it calls again:
 * so a lower one is late. We forget sooner than it does, so that it never looks late by that. */
static bool is_straggler(struct engine *engine, const struct tracker *t, uint64_t known)
{
    return t->failure.generation > known &&
           engine->env.now(engine->env.arg) < t->failure.at + ENGINE_STRAGGLER_MS;
}

static bool get_entry(struct wire_in *in, const struct tracker *t, struct engine_entry *entry)
{
    entry->slot = wire_get_u32(in);
    entry->status = wire_get_i32(in);
    entry->flags = wire_get_u32(in);
    entry->data = wire_get_block(in, &entry->len);
    if (entry->slot >= t->tree.n)
        in->bad = true;
    return !in->bad;
}

static void check_library(struct engine *engine, const struct tracker *t, uint32_t from,
                          uint32_t library, struct engine_entry *entry)
{
    if (library == engine->env.library || entry->status != 0)
        return;
    char what[320];
    signature_describe(t->sig, t->siglen, what, sizeof what);
    log_error("%s: node %u runs libpmix %u.%u.%u and this node %u.%u.%u; every node of an "
              "operation needs the same one: install one version everywhere",
              what, from, library >> 16, library >> 8 & 255, library & 255,
              engine->env.library >> 16, engine->env.library >> 8 & 255,
              engine->env.library & 255);
    entry->status = engine->env.codes.library;
}

void engine_contrib(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    size_t siglen;
    wire_in_init(&in, body, len);
    const void *sig = wire_get_block(&in, &siglen);
    uint64_t known = wire_get_u64(&in), number = wire_get_u64(&in);
    uint32_t library = wire_get_u32(&in), timeout = wire_get_u32(&in);
    uint32_t count = wire_get_count(&in, 16);
    struct tracker *t = in.bad || engine->closing ? NULL : tracker_get(engine, sig, siglen);
    uint32_t slot = t == NULL ? TREE_NONE : tracker_slot_of(t, from);
    if (slot == TREE_NONE || slot == t->self || !tree_below(&t->tree, t->self, slot)) {
        log_warning("a contribution of node %u that does not belong here was dropped", from);
    } else if (is_straggler(engine, t, known)) {
        log_debug("tracker: a straggler's contribution of node %u was dropped", from);
    } else if (t->state == TRACKER_SENT) {
        log_debug("tracker: a contribution of node %u came after its subtree was complete", from);
    } else {
        if (t->state == TRACKER_IDLE)
            tracker_open(engine, t);
        if (t->slots == NULL || !tracker_move(engine, t, TRACKER_CHILD))
            return;
        tracker_local_loss(engine, t);
        t->slots[slot].call = number;
        tracker_arm(engine, t, timeout);
        struct engine_entry entry;
        for (uint32_t i = 0; i < count && get_entry(&in, t, &entry); i++) {
            check_library(engine, t, from, library, &entry);
            if (!tree_below(&t->tree, slot, entry.slot) || !rollup_put(t, &entry))
                log_debug("tracker: slot %u of node %u's contribution ignored", entry.slot, from);
        }
        if (!wire_end(&in))
            log_warning("a malformed contribution of node %u", from);
        rollup_progress(engine, t);
    }
}

/* A release that is not for the operation that stands here: what it ended was given up already. */
static void stale_release(struct engine *engine, struct tracker *t, uint64_t generation)
{
    if (generation <= t->failure.generation)
        return;
    t->failure.generation = generation;
    t->failure.at = engine->env.now(engine->env.arg);
    if (t->state != TRACKER_SENT)
        return;
    /* Above, what we sent looks late by now: say it again with what we have learnt. */
    for (uint32_t i = 0; i < t->tree.n; i++)
        t->slots[i].sent = false;
    rollup_up(engine, t);
}

static void take_release(struct engine *engine, struct tracker *t, uint64_t generation,
                         uint64_t number, const struct engine_result *result)
{
    bool stands = t->state != TRACKER_IDLE;
    if (number != 0 && (t->call == NULL || number != t->number)) {
        stale_release(engine, t, generation);
        return;
    }
    if (result->status == 0 && t->state != TRACKER_SENT) {
        log_warning("a release came before the local call; dropped");
        return;
    }
    if (result->status != 0 && number == 0 && generation <= t->failure.generation)
        return; /* known already, by another way */
    if (result->status != 0 && generation > t->failure.generation)
        t->failure.generation = generation;
    rollup_down(engine, t, generation, result);
    if (stands) {
        tracker_end(engine, t, result);
    } else {
        t->failure.status = result->status;
        t->failure.at = engine->env.now(engine->env.arg);
        t->failure.owed++;
    }
}

void engine_release(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    size_t siglen;
    wire_in_init(&in, body, len);
    const void *sig = wire_get_block(&in, &siglen);
    uint64_t generation = wire_get_u64(&in), number = wire_get_u64(&in);
    struct engine_result result = {.status = wire_get_i32(&in)};
    result.context_id = wire_get_u64(&in);
    uint32_t count = wire_get_count(&in, 16);
    struct tracker *t = in.bad || engine->closing ? NULL
                        : result.status != 0      ? tracker_get(engine, sig, siglen)
                                                  : tracker_find(engine, sig, siglen);
    if (t == NULL || tracker_slot_of(t, from) == TREE_NONE) {
        log_debug("tracker: a release of node %u that nobody waits for was dropped", from);
        return;
    }
    struct engine_entry *entries = count > 0 ? calloc(count, sizeof *entries) : NULL;
    for (uint32_t i = 0; entries != NULL && i < count; i++)
        if (!get_entry(&in, t, &entries[i]))
            break;
    result.entries = entries;
    result.nentries = count;
    if (wire_end(&in) && (count == 0 || count == t->tree.n) && (count == 0 || entries != NULL))
        take_release(engine, t, generation, number, &result);
    else
        log_warning("a malformed release of node %u was dropped", from);
    free(entries);
}

/* The first tracker that fulfils a condition: what is done to one may free any other. */
static struct tracker *first(struct engine *engine, uint64_t arg,
                             bool (*is)(const struct engine *, const struct tracker *, uint64_t))
{
    struct tracker *t;
    TAILQ_FOREACH(t, &engine->all, all)
        if (is(engine, t, arg))
            return t;
    return NULL;
}

static bool lost_local(const struct engine *engine, const struct tracker *t, uint64_t unused)
{
    (void)unused;
    struct signature sig;
    bool lost = false;
    if (t->state != TRACKER_EARLY || t->slots[t->self].have)
        return false;
    if (signature_read(&sig, t->sig, t->siglen) == 0)
        lost = engine->env.local_status(engine->env.arg, &sig) != 0;
    signature_free(&sig);
    return lost;
}

void engine_local_loss(struct engine *engine)
{
    struct tracker *t;
    while ((t = first(engine, 0, lost_local)) != NULL) {
        tracker_local_loss(engine, t);
        rollup_progress(engine, t);
    }
}

static bool waits_for(const struct engine *engine, const struct tracker *t, uint64_t node)
{
    (void)engine;
    uint32_t slot = t->state == TRACKER_IDLE ? TREE_NONE : tracker_slot_of(t, (uint32_t)node);
    if (slot == TREE_NONE || slot == t->self)
        return false;
    return slot == tree_parent(&t->tree, t->self) ||
           (t->state != TRACKER_SENT && tree_below(&t->tree, t->self, slot) &&
            !t->slots[slot].have);
}

void engine_lost(struct engine *engine, uint32_t node)
{
    struct tracker *t;
    uint32_t *lost = realloc(engine->lost, (engine->nlost + 1) * sizeof *lost);
    if (lost == NULL)
        return;
    engine->lost = lost;
    if (tracker_node_lost(engine, node))
        return;
    lost[engine->nlost++] = node;
    while ((t = first(engine, node, waits_for)) != NULL) {
        tracker_lost(engine, t, tracker_slot_of(t, node));
        rollup_progress(engine, t);
    }
}

static uint64_t due_at(const struct tracker *t)
{
    uint64_t at = UINT64_MAX;
    const uint64_t times[] = {t->deadline, t->report, t->flush,
                              t->state == TRACKER_IDLE ? t->failure.at + ENGINE_REMEMBER_MS : 0};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] != 0 && times[i] < at)
            at = times[i];
    return at;
}

static bool is_due(const struct engine *engine, const struct tracker *t, uint64_t now)
{
    (void)engine;
    return due_at(t) <= now;
}

static void expire(struct engine *engine, struct tracker *t)
{
    char text[1024];
    if (t->self == t->tree.root) {
        tracker_missing(engine, t, text, sizeof text);
        log_error("timed out after %u s: %s", t->timeout, text);
        rollup_decide(engine, t, engine->env.codes.timeout);
        return;
    }
    signature_describe(t->sig, t->siglen, text, sizeof text);
    log_error("timed out after %u s: %s: no word of node %u, which decides", t->timeout, text,
              t->nodes[t->tree.root]);
    struct engine_result result = {.status = engine->env.codes.timeout};
    rollup_down(engine, t, 0, &result);
    tracker_end(engine, t, &result);
}

static void tick(struct engine *engine, struct tracker *t, uint64_t now)
{
    char text[1024];
    if (t->state == TRACKER_IDLE) {
        tracker_free(engine, t); /* forgotten */
    } else if (t->deadline != 0 && t->deadline <= now) {
        expire(engine, t);
    } else if (t->flush != 0 && t->flush <= now) {
        t->flush = 0;
        t->flushed = true;
        rollup_up(engine, t);
    } else {
        t->report += engine->env.stall * 1000ull;
        if (t->self != t->tree.root)
            return;
        tracker_missing(engine, t, text, sizeof text);
        log_warning("waiting for %llu s: %s",
                    (unsigned long long)((now - t->opened) / 1000), text);
    }
}

int64_t engine_next(const struct engine *engine)
{
    uint64_t at = UINT64_MAX, now = engine->env.now(engine->env.arg);
    const struct tracker *t;
    TAILQ_FOREACH(t, &engine->all, all)
        if (due_at(t) < at)
            at = due_at(t);
    return at == UINT64_MAX ? -1 : at <= now ? 0 : (int64_t)(at - now);
}

void engine_tick(struct engine *engine)
{
    struct tracker *t;
    uint64_t now = engine->env.now(engine->env.arg);
    while ((t = first(engine, now, is_due)) != NULL)
        tick(engine, t, now);
}

uint32_t engine_count(const struct engine *engine)
{
    return engine->count;
}

void engine_close(struct engine *engine)
{
    struct tracker *t;
    engine->closing = true;
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
    free(engine->lost);
    free(engine);
}
