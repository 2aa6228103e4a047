/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of group operations that succeeded, kept for a while.
 *
 * When a server is lost between having a success and passing it on, others have it that got it by
 * another way, or before: who lacks it asks for it (doubt.c). A result is found by its signature,
 * and is the one that is asked for when the asking server's call is in it. Servers of added members
 * have no call in it; so they are told only when every server of the tree has it: then one of those
 * that are left can always tell what became of the operation.
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
    unsigned char *body; /* of a RELEASE; owned */
    size_t len, siglen;
    uint64_t op;
    uint64_t at;            /* ms */
    uint32_t nnodes, nwait; /* where it was decided, while somebody is to be told: */
    uint32_t *nodes;        /* who is; owned */
    uint32_t *wait;         /* who has not said yet that it has it; owned */
};

/* A RELEASE's body has these before what an OUTCOME has, too. */
enum { LENGTH = 4, NUMBER = LENGTH + 8, HEAD = NUMBER + 8 };

static const unsigned char *sig_of(const struct decided *d)
{
    return d->body + LENGTH;
}

struct decided *decided_find(const struct engine *engine, const void *sig, size_t siglen)
{
    struct decided *d;
    TAILQ_FOREACH (d, &engine->decided, all)
        if (d->siglen == siglen && memcmp(sig_of(d), sig, siglen) == 0)
            return d;
    return NULL;
}

uint64_t decided_op(const struct decided *d)
{
    return d->op;
}

void decided_release(const struct decided *d, uint64_t number, struct wire_out *out)
{
    wire_put_u8(out, FRAME_RELEASE);
    wire_put_block(out, sig_of(d), d->siglen);
    wire_put_u64(out, 0); /* it is no failure */
    wire_put_u64(out, number);
    wire_put_raw(out, d->body + HEAD + d->siglen, d->len - HEAD - d->siglen);
}

void decided_outcome(const struct decided *d, struct wire_out *out)
{
    wire_put_u8(out, FRAME_OUTCOME);
    wire_put_block(out, sig_of(d), d->siglen);
    wire_put_u32(out, 0); /* it answers no leader */
    wire_put_raw(out, d->body + HEAD + d->siglen, d->len - HEAD - d->siglen);
}

uint64_t decided_number(const struct decided *d, uint32_t slot)
{
    struct wire_in in;
    struct procset set = {0};
    uint64_t number = 0;
    wire_in_init(&in, d->body + HEAD + d->siglen, d->len - HEAD - d->siglen);
    wire_get_i32(&in);
    wire_get_u64(&in);
    wire_get_u64(&in);
    for (int i = 0; i < 2; i++) {
        procset_read(&set, &in);
        procset_free(&set);
        set = (struct procset){0};
    }
    uint32_t n = wire_get_count(&in, ENTRY_BYTES);
    struct engine_entry *entries = entries_get(&in, n, UINT32_MAX);
    if (entries != NULL && slot < n)
        number = entries[slot].number;
    free(entries);
    return number;
}

/* Tells the servers that wait for it. */
static void tell(struct engine *engine, struct decided *d)
{
    struct wire_out out = {0};
    uint32_t *nodes = d->nodes, n = d->nnodes;
    free(d->wait);
    d->wait = d->nodes = NULL;
    d->nwait = d->nnodes = 0;
    for (uint32_t i = 0; i < n; i++) {
        decided_outcome(d, &out);
        assembly_send(engine, nodes[i], &out);
    }
    free(nodes);
}

static void forget(struct engine *engine, struct decided *d)
{
    TAILQ_REMOVE(&engine->decided, d, all);
    engine->ndecided--;
    engine->decided_bytes -= d->len;
    free(d->nodes);
    free(d->wait);
    free(d->body);
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

struct decided *decided_keep(struct engine *engine, const struct tracker *t, const void *body,
                             size_t len, uint64_t op)
{
    if (signature_kind(t->sig, t->siglen) == COLL_FENCE)
        return NULL;
    struct decided *old = decided_find(engine, t->sig, t->siglen);
    struct decided *d = calloc(1, sizeof *d);
    unsigned char *copy = malloc(len);
    if (d == NULL || copy == NULL) {
        free(d);
        free(copy);
        return NULL;
    }
    if (old != NULL) {
        tell(engine, old);
        forget(engine, old);
    }
    d->body = memcpy(copy, body, len);
    d->len = len;
    d->siglen = t->siglen;
    d->op = op;
    d->at = engine->env.now(engine->env.arg);
    TAILQ_INSERT_TAIL(&engine->decided, d, all);
    engine->ndecided++;
    engine->decided_bytes += len;
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
            d->wait[d->nwait++] = t->nodes[i];
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
