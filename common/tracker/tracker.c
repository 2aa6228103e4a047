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
    LIST_FOREACH (t, &engine->buckets[hash % engine->nbuckets], bucket)
        if (t->hash == hash && t->siglen == len && memcmp(t->sig, sig, len) == 0)
            return t;
    return NULL;
}

uint32_t tracker_slot_of(const struct tracker *t, uint32_t node)
{
    return places_slot(&t->places, node);
}

uint32_t tracker_node(const struct tracker *t, uint32_t slot)
{
    return places_node(&t->places, slot);
}

struct tracker_child *tracker_child_of(const struct tracker *t, uint32_t slot)
{
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (t->children[i].slot == slot)
            return &t->children[i];
    return NULL;
}

/* Follows the shape with some of its servers. */
static int follow(const struct engine *engine, struct tracker *t)
{
    uint32_t *nodes = calloc(t->places.n, sizeof *nodes);
    int rc = nodes != NULL ? 0 : -1;
    for (uint32_t i = 0; i < t->places.n && rc == 0; i++)
        nodes[i] = tracker_node(t, i);
    if (rc == 0)
        rc = tree_follow(&t->tree, &engine->shape, nodes);
    free(nodes);
    return rc;
}

/* Servers of other steps are in no shape. @return 0, or -1: out of memory */
static int make_tree(const struct engine *engine, struct tracker *t)
{
    const struct places *places = &t->places;
    const struct places_run *first = &places->runs[0];
    if (places->nruns == 1 && first->node == 0 && first->n == engine->shape.n) {
        t->tree = engine->whole;
        t->tree.borrowed = true;
        return 0;
    }
    t->tree = (struct tree){
        .n = places->n, .arity = engine->env.arity, .root = (uint32_t)(t->hash % places->n)};
    for (uint32_t i = 0; i < places->nruns; i++)
        if (places->runs[i].node + places->runs[i].n > engine->shape.n)
            return 0;
    return follow(engine, t);
}

static int find_children(struct tracker *t)
{
    t->parent = tree_parent(&t->tree, t->self);
    while (t->nchildren < t->tree.arity && tree_child(&t->tree, t->self, t->nchildren) != TREE_NONE)
        t->nchildren++;
    t->children = calloc(t->nchildren + 1ul, sizeof *t->children);
    for (uint32_t i = 0; i < t->nchildren && t->children != NULL; i++)
        t->children[i].slot = tree_child(&t->tree, t->self, i);
    return t->children != NULL ? 0 : -1;
}

uint32_t tracker_tree_id(const struct engine *engine, const struct tracker *t)
{
    return t->tree.slots != NULL ? engine->shape.id : engine->env.arity;
}

static void free_parts(struct tracker *t)
{
    signature_free(&t->parts);
    tree_free(&t->tree);
    places_free(&t->places);
    free(t->children);
    free(t->sig);
    free(t);
}

/* With no memory for more, a bucket has more trackers. */
static void more_buckets(struct engine *engine)
{
    uint32_t n = 2 * engine->nbuckets;
    struct tracker_bucket *buckets = calloc(n, sizeof *buckets);
    struct tracker *t;
    if (buckets == NULL)
        return;
    TAILQ_FOREACH (t, &engine->all, all) {
        LIST_REMOVE(t, bucket);
        LIST_INSERT_HEAD(&buckets[t->hash % n], t, bucket);
    }
    free(engine->buckets);
    engine->buckets = buckets;
    engine->nbuckets = n;
}

uint64_t tracker_due_at(const struct tracker *t)
{
    uint64_t at = UINT64_MAX;
    const uint64_t times[] = {
        t->deadline, t->report, t->flush,
        t->say,      t->settle, t->state == TRACKER_IDLE ? t->failure.at + ENGINE_REMEMBER_MS : 0};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] != 0 && times[i] < at)
            at = times[i];
    return at;
}

/* A time that has become later is looked at when the earlier one has come. */
void tracker_due(struct engine *engine, struct tracker *t)
{
    uint64_t at = tracker_due_at(t);
    if (t->due.place == 0 || at < t->due.at)
        timers_set(&engine->timers, &t->due, at);
}

static struct tracker *tracker_new(struct engine *engine, const void *bytes, size_t len)
{
    struct tracker *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->sig = malloc(len + 1);
    t->hash = signature_hash(bytes, len);
    bool good = signature_read(&t->parts, bytes, len) == 0 && t->sig != NULL &&
                engine->env.servers(engine->env.arg, &t->parts, &t->places) == 0;
    t->self = good ? places_slot(&t->places, engine->env.self) : TREE_NONE;
    if (t->self == TREE_NONE || make_tree(engine, t) != 0 || find_children(t) != 0 ||
        timers_reserve(&engine->timers) != 0) {
        free_parts(t);
        return NULL;
    }
    memcpy(t->sig, bytes, len);
    t->siglen = len;
    t->since = engine->env.now(engine->env.arg);
    t->looked = engine->looks;
    TAILQ_INSERT_TAIL(&engine->all, t, all);
    LIST_INSERT_HEAD(&engine->buckets[t->hash % engine->nbuckets], t, bucket);
    engine->count++;
    tracker_due(engine, t);
    if (engine->count > engine->nbuckets)
        more_buckets(engine);
    return t;
}

struct tracker *tracker_get(struct engine *engine, const void *sig, size_t len)
{
    struct tracker *t = tracker_find(engine, sig, len);
    return t != NULL ? t : tracker_new(engine, sig, len);
}

void tracker_each(struct engine *engine,
                  void (*visit)(struct engine *engine, struct tracker *t, uint64_t arg),
                  uint64_t arg)
{
    uint64_t round = ++engine->looks;
    struct tracker *t;
    /* A visit may begin another round, after which this one looks once more at what it has seen. */
    while ((t = TAILQ_FIRST(&engine->all)) != NULL && t->looked != round) {
        t->looked = round;
        TAILQ_REMOVE(&engine->all, t, all);
        TAILQ_INSERT_TAIL(&engine->all, t, all);
        visit(engine, t, arg);
    }
}

static void clear_child(struct tracker_child *child)
{
    free(child->entries);
    ranges_free(&child->missing);
    *child = (struct tracker_child){.slot = child->slot, .call = child->call, .over = child->over};
}

/* Forgets what belongs to the current operation. */
static void clear(struct tracker *t)
{
    for (uint32_t i = 0; i < t->nchildren; i++) {
        clear_child(&t->children[i]);
        t->children[i].call = 0;
    }
    ranges_free(&t->lost);
    procset_free(&t->gone);
    free(t->doubts);
    t->doubts = NULL;
    t->own = t->news = t->urgent = t->flushed = t->again = false;
    t->own_status = t->status = 0;
    t->deadline = t->report = t->flush = t->say = t->settle = 0;
    t->timeout = t->asked = 0;
}

void tracker_free(struct engine *engine, struct tracker *t)
{
    TAILQ_REMOVE(&engine->all, t, all);
    LIST_REMOVE(t, bucket);
    timers_set(&engine->timers, &t->due, UINT64_MAX);
    engine->count--;
    clear(t);
    for (uint32_t i = 0; i < t->failure.nowed; i++)
        procset_free(&t->failure.owed[i].gone);
    for (uint32_t i = 0; i < t->failure.npast; i++)
        procset_free(&t->failure.past[i].debt.gone);
    free(t->failure.owed);
    free_parts(t);
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
    return ranges_have(&engine->lost, node) || ranges_have(&engine->left, node);
}

int32_t tracker_loss(const struct engine *engine, enum coll_kind kind, uint32_t node)
{
    bool left = ranges_have(&engine->left, node);
    return left && engine->env.left_status != NULL ? engine->env.left_status(engine->env.arg, kind)
                                                   : engine->env.codes.lost;
}

int32_t tracker_slot_loss(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return tracker_loss(engine, t->parts.kind, tracker_node(t, slot));
}

bool tracker_is_loss(const struct engine *engine, const struct tracker *t, int32_t status)
{
    return status == engine->env.codes.lost ||
           (engine->env.left_status != NULL &&
            status == engine->env.left_status(engine->env.arg, t->parts.kind));
}

bool tracker_slot_lost(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return ranges_have(&t->lost, slot) || engine_is_lost(engine, tracker_node(t, slot));
}

static void add_lost(const struct tracker *t, const struct ranges *nodes, struct ranges *slots)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        for (uint64_t node = nodes->v[i].first; node <= nodes->v[i].last; node++) {
            uint32_t slot = tracker_slot_of(t, (uint32_t)node);
            if (slot != TREE_NONE)
                ranges_add(slots, slot, slot);
        }
}

void tracker_lost_slots(const struct engine *engine, const struct tracker *t, struct ranges *slots)
{
    for (uint32_t i = 0; i < t->lost.n; i++)
        ranges_add(slots, t->lost.v[i].first, t->lost.v[i].last);
    add_lost(t, &engine->lost, slots);
    add_lost(t, &engine->left, slots);
    ranges_canonical(slots);
}

void tracker_fail(struct tracker *t, int32_t status)
{
    if (t->status == 0 && status != 0) {
        t->status = status;
        t->news = true;
    }
}

void tracker_lose(struct engine *engine, struct tracker *t, uint32_t slot)
{
    ranges_put(&t->lost, slot);
    tracker_gone(engine, t, tracker_node(t, slot));
    /* What hangs below a lost server has nobody else to send it up: it is lost to this operation
     * too. Servers that are not below us are reported by those that they are below. */
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (t->children[i].said != CHILD_ALL && tree_below(&t->tree, t->children[i].slot, slot))
            tracker_fail(t, tracker_slot_loss(engine, t, slot));
}

static void mark_lost(struct engine *engine, struct tracker *t)
{
    struct ranges lost = {0};
    tracker_lost_slots(engine, t, &lost);
    for (uint32_t i = 0; i < lost.n; i++)
        for (uint32_t slot = lost.v[i].first; slot <= lost.v[i].last; slot++)
            if (slot != t->self)
                tracker_lose(engine, t, slot);
    ranges_free(&lost);
}

void tracker_gone(struct engine *engine, struct tracker *t, uint32_t node)
{
    parts_local(engine, &t->parts.members, node, &t->gone);
}

void tracker_gone_here(struct engine *engine, struct tracker *t)
{
    engine->env.local_gone(engine->env.arg, &t->parts, &t->gone);
}

const struct procset *tracker_take_gone(struct tracker *t, struct procset *gone)
{
    *gone = t->gone;
    t->gone = (struct procset){0};
    return gone->nparts > 0 ? gone : NULL;
}

void tracker_open(struct engine *engine, struct tracker *t)
{
    clear(t);
    t->opened = engine->env.now(engine->env.arg);
    t->report = engine->env.stall > 0 ? t->opened + engine->env.stall * 1000ull : 0;
    tracker_due(engine, t);
    mark_lost(engine, t);
}

void tracker_local_loss(struct engine *engine, struct tracker *t)
{
    int32_t status = 0;
    if (t->call == NULL)
        status = engine->env.local_status(engine->env.arg, &t->parts);
    if (status == 0)
        return;
    tracker_gone_here(engine, t);
    rollup_own(t, status);
}

bool tracker_is_complete(const struct tracker *t)
{
    bool complete = t->own;
    for (uint32_t i = 0; i < t->nchildren && complete; i++)
        complete = t->children[i].said == CHILD_ALL;
    return complete;
}

bool tracker_succeeds(const struct tracker *t, uint64_t generation)
{
    return t->call != NULL && !t->failure.given_up && generation > t->floor;
}

uint32_t tracker_awaited(const struct tracker *t, struct ranges *slots)
{
    uint32_t n = !t->own;
    if (!t->own)
        ranges_add(slots, t->self, t->self);
    for (uint32_t i = 0; i < t->nchildren; i++) {
        const struct tracker_child *child = &t->children[i];
        struct ranges below = {0};
        if (child->said == CHILD_NOTHING) {
            tree_subtree(&t->tree, child->slot, &below);
            n += (uint32_t)ranges_count(&below);
        } else if (child->said == CHILD_PART) {
            n += child->nmissing;
        }
        const struct ranges *more = child->said == CHILD_PART ? &child->missing : &below;
        for (uint32_t j = 0; j < more->n; j++)
            ranges_add(slots, more->v[j].first, more->v[j].last);
        ranges_free(&below);
    }
    ranges_canonical(slots);
    return n;
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
    t->news = t->urgent = true;
    tracker_due(engine, t);
}

void tracker_give_up(struct engine *engine, struct tracker *t, int32_t status)
{
    struct tracker_release release = {.result.status = status};
    struct procset gone;
    if (tracker_is_loss(engine, t, status)) { /* what all will learn, and no more */
        struct ranges lost = {0};
        procset_free(&t->gone);
        tracker_lost_slots(engine, t, &lost);
        for (uint32_t i = 0; i < lost.n; i++)
            for (uint32_t slot = lost.v[i].first; slot <= lost.v[i].last; slot++)
                tracker_gone(engine, t, tracker_node(t, slot));
        ranges_free(&lost);
    }
    release.result.gone = tracker_take_gone(t, &gone);
    t->failure.given_up = true;
    rollup_down(engine, t, &release, true);
    tracker_end(engine, t, &release.result);
    release_end(&release);
    procset_free(&gone);
}

void tracker_again(struct engine *engine, struct tracker *t)
{
    tracker_move(engine, t, t->call != NULL ? TRACKER_AGAIN : TRACKER_END);
    if (t->state == TRACKER_IDLE) {
        clear(t);
        tracker_due(engine, t);
        return;
    }
    t->flush = 0;
    t->flushed = false;
    t->asked = 0;
    free(t->doubts);
    t->doubts = NULL;
    for (uint32_t i = 0; i < t->nchildren; i++)
        clear_child(&t->children[i]);
    t->status = t->own_status;
    t->news = true;
    mark_lost(engine, t);
    rollup_progress(engine, t);
}

void tracker_end(struct engine *engine, struct tracker *t, const struct engine_result *result)
{
    struct engine_call *call = t->call;
    uint64_t *counts = result->status == 0 ? engine->counts.done : engine->counts.failed;
    tracker_move(engine, t, TRACKER_END);
    counts[t->parts.kind]++;
    t->call = NULL;
    for (uint32_t i = 0; i < t->nchildren; i++)
        t->children[i].over = result->status != 0 ? t->children[i].call : t->children[i].number;
    clear(t);
    if (result->status != 0) {
        t->failure.at = engine->env.now(engine->env.arg);
        tracker_remember(t, result);
        tries_end(engine, t, result);
        if (call == NULL)
            tracker_owe(t, result);
    }
    tracker_due(engine, t);
    bool waiting = t->queue != NULL; /* then t stays, whatever done() does but to close */
    tracker_tidy(engine, t);
    if (call != NULL)
        call->done(call, result);
    if (waiting && !engine->closing && t->call == NULL) {
        struct engine_call *next = t->queue;
        t->queue = next->next;
        tracker_start(engine, t, next);
    }
}

void tracker_missing(struct engine *engine, struct tracker *t, char *buf, size_t cap)
{
    struct ranges slots = {0};
    char what[320], who[512] = "";
    uint32_t n = tracker_awaited(t, &slots), named = 0;
    uint32_t *nodes = tracker_nodes(t, &slots, &named);
    signature_describe(t->sig, t->siglen, what, sizeof what);
    engine->env.missing(engine->env.arg, &t->parts, nodes, named, who, sizeof who);
    snprintf(buf, cap, "%s: %u of %u nodes missing: %s%s", what, n, t->tree.n, who,
             named < n ? ", and others" : "");
    ranges_free(&slots);
    free(nodes);
}

uint32_t *tracker_nodes(const struct tracker *t, const struct ranges *slots, uint32_t *n)
{
    uint32_t *nodes = calloc(ranges_count(slots) + 1, sizeof *nodes);
    *n = 0;
    for (uint32_t i = 0; i < slots->n && nodes != NULL; i++)
        for (uint32_t slot = slots->v[i].first; slot <= slots->v[i].last; slot++)
            nodes[(*n)++] = tracker_node(t, slot);
    return nodes;
}

void engine_stalled(const struct engine *engine, uint64_t since, uint64_t now, const char *text)
{
    uint64_t s = (now - since) / 1000;
    if (engine->env.stalled != NULL)
        engine->env.stalled(engine->env.arg, s, text);
    else
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
}
