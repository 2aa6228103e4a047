/* The life of a tracker: the table of states, opening and ending. */
#include "common/tracker/tracker.h"

#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[TRACKER_STATES] = {"idle", "early", "gather", "sent"};
static const char *const event_names[TRACKER_EVENTS] = {"call", "child", "complete", "end",
                                                        "again"};

enum { NO_ROW = -1 };

/* An empty row is a state in which the event cannot happen. */
static const int table[TRACKER_STATES][TRACKER_EVENTS] = {
    /*                  CALL            CHILD           COMPLETE      END           AGAIN */
    [TRACKER_IDLE] = {TRACKER_GATHER, TRACKER_EARLY, NO_ROW, NO_ROW, NO_ROW},
    [TRACKER_EARLY] = {TRACKER_GATHER, TRACKER_EARLY, NO_ROW, TRACKER_IDLE, TRACKER_IDLE},
    [TRACKER_GATHER] = {NO_ROW, TRACKER_GATHER, TRACKER_SENT, TRACKER_IDLE, TRACKER_GATHER},
    [TRACKER_SENT] = {NO_ROW, NO_ROW, NO_ROW, TRACKER_IDLE, TRACKER_GATHER},
};

const char *tracker_state_name(enum tracker_state state)
{
    return state_names[state];
}

bool tracker_move(struct engine *engine, struct tracker *t, enum tracker_event event)
{
    int next = table[t->state][event];
    uint64_t now = engine->env.now(engine->env.arg);
    char what[320];
    if (next == NO_ROW) {
        signature_describe(t->sig, t->siglen, what, sizeof what);
        log_warning("%s: %s cannot happen in state %s; ignored", what, event_names[event],
                    state_names[t->state]);
        return false;
    }
    if ((enum tracker_state)next == t->state)
        return true;
    if (log_wants(LOG_LEVEL_DEBUG)) {
        signature_describe(t->sig, t->siglen, what, sizeof what);
        log_debug("tracker: %s #%016" PRIx64 ": %s: %s -> %s after %" PRIu64 " ms", what, t->hash,
                  event_names[event], state_names[t->state], state_names[next], now - t->since);
    }
    t->since = now;
    t->state = (enum tracker_state)next;
    return true;
}

struct tracker *tracker_find(struct engine *engine, const void *sig, size_t len)
{
    uint64_t hash = signature_hash(sig, len);
    struct tracker *t;
    LIST_FOREACH (t, &engine->buckets[hash % ENGINE_BUCKETS], bucket)
        if (t->hash == hash && t->siglen == len && memcmp(t->sig, sig, len) == 0)
            return t;
    return NULL;
}

uint32_t tracker_slot_of(const struct tracker *t, uint32_t node)
{
    uint32_t low = 0, high = t->tree.n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->nodes[mid] < node)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->tree.n && t->nodes[low] == node ? low : TREE_NONE;
}

static struct tracker *tracker_new(struct engine *engine, const void *bytes, size_t len)
{
    struct signature sig;
    struct tracker *t = calloc(1, sizeof *t);
    if (signature_read(&sig, bytes, len) != 0 || t == NULL) {
        signature_free(&sig);
        free(t);
        return NULL;
    }
    if (engine->env.servers(engine->env.arg, &sig, &t->nodes, &t->tree.n) != 0)
        t->tree.n = 0;
    signature_free(&sig);
    t->self = t->tree.n > 0 ? tracker_slot_of(t, engine->env.self) : TREE_NONE;
    t->sig = malloc(len);
    if (t->self == TREE_NONE || t->sig == NULL) {
        free(t->nodes);
        free(t->sig);
        free(t);
        return NULL;
    }
    memcpy(t->sig, bytes, len);
    t->siglen = len;
    t->hash = signature_hash(bytes, len);
    t->since = engine->env.now(engine->env.arg);
    t->tree.arity = engine->env.arity;
    t->tree.root = (uint32_t)(t->hash % t->tree.n);
    TAILQ_INSERT_TAIL(&engine->all, t, all);
    LIST_INSERT_HEAD(&engine->buckets[t->hash % ENGINE_BUCKETS], t, bucket);
    engine->count++;
    return t;
}

struct tracker *tracker_get(struct engine *engine, const void *sig, size_t len)
{
    struct tracker *t = tracker_find(engine, sig, len);
    return t != NULL ? t : tracker_new(engine, sig, len);
}

static void free_slots(struct tracker_slot *slots, uint32_t n)
{
    for (uint32_t i = 0; slots != NULL && i < n; i++) {
        free(slots[i].data);
        free(slots[i].added);
    }
    free(slots);
}

void tracker_free(struct engine *engine, struct tracker *t)
{
    TAILQ_REMOVE(&engine->all, t, all);
    LIST_REMOVE(t, bucket);
    engine->count--;
    free_slots(t->slots, t->tree.n);
    free(t->failure.owed);
    free(t->nodes);
    free(t->sig);
    free(t);
}

void tracker_tidy(struct engine *engine, struct tracker *t)
{
    const struct tracker_failure *f = &t->failure;
    if (t->state == TRACKER_IDLE && t->queue == NULL && f->generation == 0 && f->nowed == 0 &&
        !f->given_up)
        tracker_free(engine, t);
}

void tracker_owe(struct tracker *t, int32_t status)
{
    struct tracker_failure *f = &t->failure;
    int32_t *owed = realloc(f->owed, (f->nowed + 1ul) * sizeof *owed);
    if (owed == NULL)
        return;
    f->owed = owed;
    owed[f->nowed++] = status;
}

bool tracker_owed(struct tracker *t, int32_t *status)
{
    struct tracker_failure *f = &t->failure;
    if (f->nowed == 0)
        return false;
    *status = f->owed[0];
    memmove(f->owed, f->owed + 1, --f->nowed * sizeof *f->owed);
    return true;
}

bool tracker_node_lost(const struct engine *engine, uint32_t node)
{
    for (uint32_t i = 0; i < engine->nlost; i++)
        if (engine->lost[i] == node)
            return true;
    return false;
}

void tracker_lost(struct engine *engine, struct tracker *t, uint32_t slot)
{
    /* What hangs below a lost server has nobody else to send it up: it is lost to this operation
     * too. Servers that are not below us are reported by those that they are below. */
    for (uint32_t i = 0; i < t->tree.n; i++) {
        if (i == t->self || !tree_below(&t->tree, t->self, i) || !tree_below(&t->tree, slot, i))
            continue;
        struct engine_entry entry = {.slot = i, .status = engine->env.codes.lost};
        rollup_put(t, &entry);
    }
}

static void mark_lost(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < engine->nlost; i++) {
        uint32_t slot = tracker_slot_of(t, engine->lost[i]);
        if (slot != TREE_NONE)
            tracker_lost(engine, t, slot);
    }
}

void tracker_open(struct engine *engine, struct tracker *t)
{
    t->slots = calloc(t->tree.n, sizeof *t->slots);
    t->opened = engine->env.now(engine->env.arg);
    t->report = engine->env.stall > 0 ? t->opened + engine->env.stall * 1000ull : 0;
    t->deadline = t->flush = 0;
    t->timeout = 0;
    t->flushed = false;
    if (t->slots != NULL)
        mark_lost(engine, t);
}

void tracker_local_loss(struct engine *engine, struct tracker *t)
{
    struct signature sig;
    struct engine_entry own = {.slot = t->self};
    if (t->call == NULL && signature_read(&sig, t->sig, t->siglen) == 0)
        own.status = engine->env.local_status(engine->env.arg, &sig);
    if (t->call == NULL)
        signature_free(&sig);
    if (own.status != 0)
        rollup_put(t, &own);
}

void tracker_arm(struct engine *engine, struct tracker *t, uint32_t timeout, uint64_t left)
{
    if (timeout == 0)
        return;
    if (left > timeout * 1000ull)
        left = timeout * 1000ull;
    uint64_t deadline = engine->env.now(engine->env.arg) + left;
    if (t->self != t->tree.root)
        deadline += ENGINE_GRACE_MS; /* the root's word comes first */
    if (t->deadline != 0 && t->deadline <= deadline)
        return;
    t->timeout = timeout;
    t->deadline = deadline;
}

void tracker_give_up(struct engine *engine, struct tracker *t, int32_t status)
{
    struct tracker_release release = {.result.status = status};
    t->failure.given_up = true;
    rollup_down(engine, t, &release, true);
    tracker_end(engine, t, &release.result);
}

void tracker_again(struct engine *engine, struct tracker *t)
{
    tracker_move(engine, t, TRACKER_AGAIN);
    t->flush = 0;
    t->flushed = false;
    if (t->state == TRACKER_IDLE) {
        free_slots(t->slots, t->tree.n);
        t->slots = NULL;
        t->deadline = t->report = 0;
        return;
    }
    for (uint32_t i = 0; i < t->tree.n; i++) {
        struct tracker_slot *s = &t->slots[i];
        s->sent = false;
        if (i == t->self)
            continue;
        free(s->data);
        free(s->added);
        *s = (struct tracker_slot){.call = s->call};
    }
    mark_lost(engine, t);
    rollup_progress(engine, t);
}

void tracker_end(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct engine_call *call = t->call;
    struct tracker_slot *slots = t->slots; /* the result may point into them */
    uint64_t *counts = result->status == 0 ? engine->counts.done : engine->counts.failed;
    tracker_move(engine, t, TRACKER_END);
    counts[signature_kind(t->sig, t->siglen)]++;
    t->call = NULL;
    t->slots = NULL;
    t->deadline = t->report = t->flush = 0;
    if (result->status != 0) {
        t->failure.at = engine->env.now(engine->env.arg);
        if (call == NULL)
            tracker_owe(t, result->status);
    }
    uint32_t n = t->tree.n;
    bool waiting = t->queue != NULL; /* then t stays, whatever done() does but to close */
    tracker_tidy(engine, t);
    if (call != NULL)
        call->done(call, result);
    free_slots(slots, n);
    if (waiting && !engine->closing && t->call == NULL) {
        struct engine_call *next = t->queue;
        t->queue = next->next;
        tracker_start(engine, t, next);
    }
}

void tracker_missing(struct engine *engine, struct tracker *t, char *buf, size_t cap)
{
    uint32_t *nodes = calloc(t->tree.n, sizeof *nodes), n = 0;
    struct signature sig;
    char what[320], who[512] = "";
    signature_describe(t->sig, t->siglen, what, sizeof what);
    for (uint32_t i = 0; nodes != NULL && i < t->tree.n; i++)
        if (!t->slots[i].have && tree_below(&t->tree, t->self, i))
            nodes[n++] = t->nodes[i];
    if (signature_read(&sig, t->sig, t->siglen) == 0)
        engine->env.missing(engine->env.arg, &sig, nodes, n, who, sizeof who);
    signature_free(&sig);
    snprintf(buf, cap, "%s: %u of %u nodes missing: %s", what, n, t->tree.n, who);
    free(nodes);
}
