/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of group operations that succeeded, kept for a while.
 *
 * When a server is lost between having a success and passing it on, others have it that got it by
 * another way, or before: who lacks it asks for it (doubt.c). A result is found by its signature,
 * and is the one that is asked for when its generation is higher than what the asking server had
 * heard of when it called. Servers of added members have made no such call; so they are told only
 * when every server of the tree has it: then one of those that are left can always tell what became
 * of the operation.
 *
 * Fences are not kept: they may carry much data.
 *
 * HAVE: block signature, u64 assembly
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { DECIDED_MAX = 64, DECIDED_BYTES = 32 << 20 };

struct decided {
    TAILQ_ENTRY(decided) all;
    struct shared_bytes *bytes; /* of the release */
    void *sig;                  /* borrowed from them */
    size_t siglen;
    uint64_t generation, op;
    uint64_t at;            /* ms */
    uint32_t nnodes, nwait; /* where it was decided, while somebody is to be told: */
    uint32_t *nodes;        /* who is; owned */
    uint32_t *wait;         /* who has not said yet that it has it; owned */
};

enum { LENGTH = 4 /* of a block, before its bytes */ };

struct decided *decided_find(const struct engine *engine, const void *sig, size_t siglen)
{
    struct decided *d;
    TAILQ_FOREACH (d, &engine->decided, all)
        if (d->siglen == siglen && memcmp(d->sig, sig, siglen) == 0)
            return d;
    return NULL;
}

uint64_t decided_op(const struct decided *d)
{
    return d->op;
}

uint64_t decided_generation(const struct decided *d)
{
    return d->generation;
}

void decided_release(struct engine *engine, const struct decided *d, const struct tracker *t,
                     uint32_t slot, uint64_t number)
{
    struct tracker_release release = {.bytes = d->bytes};
    rollup_release(engine, t, slot, &release, number);
}

void decided_outcome(struct engine *engine, const struct decided *d, uint32_t node)
{
    outcome_send(engine, node, NULL, 0, d->bytes); /* it answers no leader */
}

/* Tells the servers that wait for it. */
static void tell(struct engine *engine, struct decided *d)
{
    uint32_t *nodes = d->nodes, n = d->nnodes;
    struct shared_bytes *bytes = shared_bytes_hold(d->bytes);
    free(d->wait);
    d->wait = d->nodes = NULL;
    d->nwait = d->nnodes = 0;
    for (uint32_t i = 0; i < n; i++)
        outcome_send(engine, nodes[i], NULL, 0, bytes);
    shared_bytes_drop(bytes);
    free(nodes);
}

static void forget(struct engine *engine, struct decided *d)
{
    TAILQ_REMOVE(&engine->decided, d, all);
    engine->ndecided--;
    engine->decided_bytes -= d->bytes->len;
    free(d->nodes);
    free(d->wait);
    shared_bytes_drop(d->bytes);
    free(d);
}

/* The oldest go when there are too many; the latest always stays. */
static void make_room(struct engine *engine)
{
    struct decided *d;
    while ((engine->ndecided > DECIDED_MAX || engine->decided_bytes > DECIDED_BYTES) &&
           engine->ndecided > 1) {
        d = TAILQ_FIRST(&engine->decided);
        tell(engine, d);
        forget(engine, d);
    }
}

struct decided *decided_keep(struct engine *engine, const struct tracker *t,
                             struct tracker_release *release)
{
    struct decided *old = decided_find(engine, t->sig, t->siglen);
    struct decided *d = calloc(1, sizeof *d);
    if (d == NULL || release_bytes(release, t->sig, t->siglen) == NULL) {
        free(d);
        return NULL;
    }
    if (old != NULL) {
        tell(engine, old);
        forget(engine, old);
    }
    d->bytes = shared_bytes_hold(release->bytes);
    d->sig = d->bytes->data + LENGTH;
    d->siglen = t->siglen;
    d->generation = release->generation;
    d->op = release->op;
    d->at = engine->env.now(engine->env.arg);
    TAILQ_INSERT_TAIL(&engine->decided, d, all);
    engine->ndecided++;
    engine->decided_bytes += d->bytes->len;
    make_room(engine);
    return d;
}

void decided_has(struct engine *engine, struct decided *d, uint32_t node)
{
    for (uint32_t i = 0; i < d->nwait; i++)
        if (d->wait[i] == node) {
            d->wait[i] = d->wait[--d->nwait];
            break;
        }
    if (d->nwait == 0 && d->nnodes > 0)
        tell(engine, d);
}

void decided_tell(struct engine *engine, struct decided *d, const struct tracker *t,
                  uint32_t *nodes, uint32_t n)
{
    d->nodes = nodes;
    d->nnodes = n;
    d->wait = calloc(t->tree.n, sizeof *d->wait);
    for (uint32_t i = 0; i < t->tree.n && d->wait != NULL; i++)
        if (i != t->self && !tracker_slot_lost(engine, t, i))
            d->wait[d->nwait++] = tracker_node(t, i);
    if (d->nwait == 0)
        tell(engine, d);
}

void engine_have(struct engine *engine, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    size_t siglen;
    wire_in_init(&in, body, len);
    const void *sig = wire_get_block(&in, &siglen);
    uint64_t op = wire_get_u64(&in);
    struct decided *d = wire_end(&in) ? decided_find(engine, sig, siglen) : NULL;
    if (d != NULL && d->op == op)
        decided_has(engine, d, from);
    else
        log_debug("tracker: node %u has a result that is not known here any more", from);
}

void decided_lost(struct engine *engine, uint32_t node)
{
    struct decided *d;
    TAILQ_FOREACH (d, &engine->decided, all)
        decided_has(engine, d, node);
}

uint64_t decided_next(const struct engine *engine)
{
    const struct decided *d = TAILQ_FIRST(&engine->decided); /* the oldest */
    return d != NULL ? d->at + ENGINE_STRAGGLER_MS : UINT64_MAX;
}

bool decided_tick(struct engine *engine, uint64_t now)
{
    struct decided *d = TAILQ_FIRST(&engine->decided);
    if (d == NULL || d->at + ENGINE_STRAGGLER_MS > now)
        return false;
    tell(engine, d);
    forget(engine, d);
    return true;
}

void decided_close(struct engine *engine)
{
    struct decided *d;
    while ((d = TAILQ_FIRST(&engine->decided)) != NULL)
        forget(engine, d);
}
