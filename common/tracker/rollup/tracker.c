/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a tracker: the table of states; how it is found, made and freed; its time. */
#include "common/tracker/rollup/tracker.h"

#include "common/util/log.h"
#include "common/util/states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[TRACKER_STATES] = {"idle", "early", "gather", "sent", "doubt"};
static const char *const event_names[TRACKER_EVENTS] = {"call", "child", "complete",
                                                        "end",  "again", "loss"};

static const int table[TRACKER_STATES][TRACKER_EVENTS] = {
    /*                  CALL            CHILD           COMPLETE      END           AGAIN
                        LOSS */
    [TRACKER_IDLE] = {TRACKER_GATHER, TRACKER_EARLY, STATES_NONE, STATES_NONE, STATES_NONE,
                      STATES_NONE},
    [TRACKER_EARLY] = {TRACKER_GATHER, TRACKER_EARLY, STATES_NONE, TRACKER_IDLE, STATES_NONE,
                       TRACKER_DOUBT},
    [TRACKER_GATHER] = {STATES_NONE, TRACKER_GATHER, TRACKER_SENT, TRACKER_IDLE, TRACKER_GATHER,
                        TRACKER_DOUBT},
    [TRACKER_SENT] = {STATES_NONE, STATES_NONE, STATES_NONE, TRACKER_IDLE, TRACKER_GATHER,
                      TRACKER_DOUBT},
    [TRACKER_DOUBT] = {TRACKER_DOUBT, STATES_NONE, STATES_NONE, TRACKER_IDLE, TRACKER_GATHER,
                       TRACKER_DOUBT},
};

static const struct states life = {state_names, event_names, &table[0][0], TRACKER_EVENTS};

const char *tracker_state_name(enum tracker_state state)
{
    return state_names[state];
}

bool tracker_move(struct engine *engine, struct tracker *t, enum tracker_event event)
{
    int next = table[t->state][event];
    uint64_t now = engine_now(engine);
    char what[320] = "";
    if ((enum tracker_state)next == t->state)
        return true;
    if (next == STATES_NONE || log_wants(LOG_LEVEL_DEBUG))
        signature_describe(t->sig, t->siglen, what, sizeof what);
    states_next(&life, (int)t->state, event, "tracker: %s #%016" PRIx64 " after %" PRIu64 " ms",
                what, t->hash, now - t->since);
    if (next == STATES_NONE)
        return false;
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

uint64_t engine_now(const struct engine *engine)
{
    return (uint64_t)timers_now(engine->env.timers);
}

uint64_t engine_now_us(const struct engine *engine)
{
    return (uint64_t)timers_now_us(engine->env.timers);
}

uint64_t engine_clock(const struct engine *engine)
{
    return (uint64_t)timers_clock(engine->env.timers);
}

bool engine_is_due(const struct engine *engine, struct timer *due, uint64_t at)
{
    uint64_t now = engine_now(engine);
    bool is_due = at != 0 && at <= now;
    timer_at(due, (int64_t)(is_due ? now : at));
    return is_due;
}

uint64_t tracker_due_at(const struct tracker *t)
{
    const uint64_t kept = t->failure.at != 0 ? t->failure.at + ENGINE_REMEMBER_MS : t->wanted + 1;
    const uint64_t forgotten = t->state == TRACKER_IDLE ? kept : 0;
    const uint64_t late = (uint64_t)timers_due(t->due.timers, (int64_t)t->deadline);
    return timer_earliest((uint64_t[]){late, t->report, t->flush, t->say, t->settle, forgotten}, 6);
}

/* A time that has become later is looked at when the earlier one has come. */
void tracker_due(struct tracker *t)
{
    timer_sooner(&t->due, (int64_t)tracker_due_at(t));
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
    if (t->self == TREE_NONE || tracker_place(engine, t) != 0) {
        free_parts(t);
        return NULL;
    }
    timer_init(&t->due, engine->env.timers, engine->up->due, engine);
    timer_at(&t->due, (int64_t)tracker_due_at(t));
    memcpy(t->sig, bytes, len);
    t->siglen = len;
    t->since = engine_now(engine);
    t->looked = engine->looks;
    TAILQ_INSERT_TAIL(&engine->all, t, all);
    LIST_INSERT_HEAD(&engine->buckets[t->hash % engine->nbuckets], t, bucket);
    engine->count++;
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

void tracker_clear_child(struct tracker_child *child)
{
    shared_bytes_drop(child->entries);
    ranges_free(&child->missing);
    *child = (struct tracker_child){.slot = child->slot, .call = child->call, .over = child->over};
}

void pieces_free(struct pieces *pieces)
{
    for (uint32_t i = 0; i < pieces->n; i++)
        shared_bytes_drop(pieces->v[i]);
    free(pieces->v);
    *pieces = (struct pieces){0};
}

void data_clear(struct tracker_data *data)
{
    while (data->later != NULL) {
        struct later *next = data->later->next;
        free(data->later);
        data->later = next;
    }
    pieces_free(&data->pieces);
    *data = (struct tracker_data){0};
}

void tracker_clear(struct tracker *t)
{
    for (uint32_t i = 0; i < t->nchildren; i++) {
        tracker_clear_child(&t->children[i]);
        t->children[i].call = 0;
    }
    ranges_free(&t->lost);
    procset_free(&t->gone);
    data_clear(&t->data);
    free(t->doubts);
    t->doubts = NULL;
    t->flushed = t->later_try = false;
    t->news = NEWS_NONE;
    t->own_status = t->status = 0;
    t->deadline = t->report = t->flush = t->say = t->settle = 0;
    t->timeout = t->asked = 0;
}

void tracker_free(struct engine *engine, struct tracker *t)
{
    TAILQ_REMOVE(&engine->all, t, all);
    LIST_REMOVE(t, bucket);
    timer_stop(&t->due);
    engine->count--;
    tracker_clear(t);
    while (t->failure.npast > 0)
        procset_free(&t->failure.past[--t->failure.npast].gone);
    free_parts(t);
}

void tracker_tidy(struct engine *engine, struct tracker *t)
{
    if (t->state == TRACKER_IDLE && t->queue == NULL && t->failure.at == 0 && t->wanted == 0)
        tracker_free(engine, t);
}

void engine_stalled(const struct engine *engine, uint64_t since, uint64_t now, const char *text,
                    const uint32_t *nodes, uint32_t n)
{
    uint64_t s = (now - since) / 1000;
    if (engine->env.stalled != NULL)
        engine->env.stalled(engine->env.arg, s, text, nodes, n);
    else
        log_warning("waiting for %llu s: %s", (unsigned long long)s, text);
}

void engine_hear(struct engine *engine, uint64_t generation)
{
    if (generation > engine->generations && generation < UINT64_MAX / 2)
        engine->generations = generation;
}
