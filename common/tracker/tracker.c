/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a tracker: the table of states, opening and ending. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[TRACKER_STATES] = {"idle", "early", "gather", "sent", "doubt"};
static const char *const event_names[TRACKER_EVENTS] = {"call", "child", "complete",
                                                        "end",  "again", "loss"};

enum { NO_ROW = -1 };

/* An empty row is a state in which the event cannot happen. */
static const int table[TRACKER_STATES][TRACKER_EVENTS] = {
    /*                  CALL            CHILD           COMPLETE      END           AGAIN
                        LOSS */
    [TRACKER_IDLE] = {TRACKER_GATHER, TRACKER_EARLY, NO_ROW, NO_ROW, NO_ROW, NO_ROW},
    [TRACKER_EARLY] = {TRACKER_GATHER, TRACKER_EARLY, NO_ROW, TRACKER_IDLE, NO_ROW, TRACKER_DOUBT},
    [TRACKER_GATHER] = {NO_ROW, TRACKER_GATHER, TRACKER_SENT, TRACKER_IDLE, TRACKER_GATHER,
                        TRACKER_DOUBT},
    [TRACKER_SENT] = {NO_ROW, NO_ROW, NO_ROW, TRACKER_IDLE, TRACKER_GATHER, TRACKER_DOUBT},
    [TRACKER_DOUBT] = {TRACKER_DOUBT, NO_ROW, NO_ROW, TRACKER_IDLE, TRACKER_GATHER, TRACKER_DOUBT},
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
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (t->nodes[i] == node)
            return i;
    return TREE_NONE;
}

/* Servers of other steps are in no shape. @return 0, or -1: out of memory */
static int make_tree(const struct engine *engine, struct tracker *t)
{
    t->tree.arity = engine->env.arity;
    t->tree.root = (uint32_t)(t->hash % t->tree.n);
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (t->nodes[i] >= engine->shape.n)
            return 0;
    return tree_follow(&t->tree, &engine->shape, t->nodes);
}

uint32_t tracker_tree_id(const struct engine *engine, const struct tracker *t)
{
    return t->tree.slots != NULL ? engine->shape.id : engine->env.arity;
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
    t->hash = signature_hash(bytes, len);
    if (t->self == TREE_NONE || t->sig == NULL || make_tree(engine, t) != 0) {
        free(t->nodes);
        free(t->sig);
        free(t);
        return NULL;
    }
    memcpy(t->sig, bytes, len);
    t->siglen = len;
    t->since = engine->env.now(engine->env.arg);
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
    for (uint32_t i = 0; i < t->failure.nowed; i++)
        procset_free(&t->failure.owed[i].gone);
    procset_free(&t->gone);
    for (uint32_t i = 0; i < t->failure.npast; i++)
        procset_free(&t->failure.past[i].debt.gone);
    free(t->failure.owed);
    tree_free(&t->tree);
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

const struct tracker_past *tracker_past_after(const struct tracker *t, uint64_t known)
{
    for (uint32_t i = 0; i < t->failure.npast; i++)
        if (t->failure.past[i].generation > known)
            return &t->failure.past[i];
    return NULL;
}

void tracker_remember(struct tracker *t, const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    uint64_t newest = f->npast > 0 ? f->past[f->npast - 1].generation : 0;
    if (f->generation <= newest)
        return;
    if (f->npast == TRACKER_PAST) {
        procset_free(&f->past[0].debt.gone);
        memmove(f->past, f->past + 1, --f->npast * sizeof *f->past);
    }
    struct tracker_past *past = &f->past[f->npast++];
    *past = (struct tracker_past){f->generation,
                                  {.generation = f->generation, .status = result->status}};
    if (result->gone != NULL)
        procset_unite(&past->debt.gone, result->gone);
}

void tracker_owe(struct tracker *t, const struct engine_result *result)
{
    struct tracker_failure *f = &t->failure;
    struct tracker_debt *owed = realloc(f->owed, (f->nowed + 1ul) * sizeof *owed);
    if (owed == NULL)
        return;
    f->owed = owed;
    owed[f->nowed] = (struct tracker_debt){.generation = f->given_up ? 0 : f->generation,
                                           .status = result->status};
    if (result->gone != NULL)
        procset_unite(&owed[f->nowed].gone, result->gone);
    f->nowed++;
}

bool tracker_owed(struct tracker *t, struct tracker_debt *debt)
{
    struct tracker_failure *f = &t->failure;
    if (f->nowed == 0)
        return false;
    *debt = f->owed[0];
    memmove(f->owed, f->owed + 1, --f->nowed * sizeof *f->owed);
    return true;
}

bool engine_is_lost(const struct engine *engine, uint32_t node)
{
    return node < engine->nknown && engine->known[node] != PEER_THERE;
}

int32_t tracker_loss(const struct engine *engine, enum coll_kind kind, uint32_t node)
{
    bool left = node < engine->nknown && engine->known[node] == PEER_LEFT;
    return left && engine->env.left_status != NULL ? engine->env.left_status(engine->env.arg, kind)
                                                   : engine->env.codes.lost;
}

int32_t tracker_slot_loss(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return tracker_loss(engine, signature_kind(t->sig, t->siglen), t->nodes[slot]);
}

bool tracker_is_loss(const struct engine *engine, const struct tracker *t, int32_t status)
{
    return status == engine->env.codes.lost ||
           (engine->env.left_status != NULL &&
            status == engine->env.left_status(engine->env.arg, signature_kind(t->sig, t->siglen)));
}

bool tracker_slot_lost(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return (t->slots != NULL && t->slots[slot].lost) || engine_is_lost(engine, t->nodes[slot]);
}

void tracker_lose(struct engine *engine, struct tracker *t, uint32_t slot)
{
    t->slots[slot].lost = true;
    tracker_gone(engine, t, t->nodes[slot]);
    /* What hangs below a lost server has nobody else to send it up: it is lost to this operation
     * too. Servers that are not below us are reported by those that they are below. */
    for (uint32_t i = 0; i < t->tree.n; i++) {
        if (i == t->self || !tree_below(&t->tree, t->self, i) || !tree_below(&t->tree, slot, i))
            continue;
        struct engine_entry entry = {.slot = i, .status = tracker_slot_loss(engine, t, slot)};
        rollup_put(t, &entry);
    }
}

static void mark_lost(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (i != t->self && tracker_slot_lost(engine, t, i))
            tracker_lose(engine, t, i);
}

void tracker_gone(struct engine *engine, struct tracker *t, uint32_t node)
{
    struct signature sig;
    if (signature_read(&sig, t->sig, t->siglen) != 0)
        return;
    parts_local(engine, &sig.members, node, &t->gone);
    signature_free(&sig);
}

void tracker_gone_here(struct engine *engine, struct tracker *t)
{
    struct signature sig;
    if (signature_read(&sig, t->sig, t->siglen) != 0)
        return;
    engine->env.local_gone(engine->env.arg, &sig, &t->gone);
    signature_free(&sig);
}

const struct procset *tracker_take_gone(struct tracker *t, struct procset *gone)
{
    *gone = t->gone;
    t->gone = (struct procset){0};
    return gone->nparts > 0 ? gone : NULL;
}

void tracker_open(struct engine *engine, struct tracker *t)
{
    t->slots = calloc(t->tree.n, sizeof *t->slots);
    t->opened = engine->env.now(engine->env.arg);
    t->report = engine->env.stall > 0 ? t->opened + engine->env.stall * 1000ull : 0;
    t->deadline = t->flush = 0;
    t->timeout = t->asked = 0;
    t->settle = 0;
    t->flushed = t->again = false;
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
    if (own.status == 0)
        return;
    tracker_gone_here(engine, t);
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
    struct procset gone;
    if (tracker_is_loss(engine, t, status)) { /* what all will learn, and no more */
        procset_free(&t->gone);
        t->gone = (struct procset){0};
        for (uint32_t i = 0; i < t->tree.n; i++)
            if (tracker_slot_lost(engine, t, i))
                tracker_gone(engine, t, t->nodes[i]);
    }
    release.result.gone = tracker_take_gone(t, &gone);
    t->failure.given_up = true;
    rollup_down(engine, t, &release, true);
    tracker_end(engine, t, &release.result);
    procset_free(&gone);
}

void tracker_again(struct engine *engine, struct tracker *t)
{
    tracker_move(engine, t, t->call != NULL ? TRACKER_AGAIN : TRACKER_END);
    t->flush = 0;
    t->flushed = false;
    t->asked = 0;
    if (t->state == TRACKER_IDLE) {
        free_slots(t->slots, t->tree.n);
        t->slots = NULL;
        t->deadline = t->report = t->settle = 0;
        procset_free(&t->gone);
        t->gone = (struct procset){0};
        return;
    }
    for (uint32_t i = 0; i < t->tree.n; i++) {
        struct tracker_slot *s = &t->slots[i];
        s->sent = false;
        if (i == t->self)
            continue;
        free(s->data);
        free(s->added);
        *s = (struct tracker_slot){.call = s->call, .lost = s->lost};
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
    t->deadline = t->report = t->flush = t->settle = 0;
    if (result->status != 0) {
        t->failure.at = engine->env.now(engine->env.arg);
        tracker_remember(t, result);
        tries_end(engine, t, result);
        if (call == NULL)
            tracker_owe(t, result);
    }
    procset_free(&t->gone);
    t->gone = (struct procset){0};
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

void engine_stalled(const struct engine *engine, uint64_t since, uint64_t now, const char *text)
{
    uint64_t s = (now - since) / 1000;
    if (engine->env.stalled != NULL)
        engine->env.stalled(engine->env.arg, s, text);
    else
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
}
