/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of operations that succeeded, kept for a while (coll_traits::is_recoverable).
 *
 * When a server is lost between having a success and passing it on, other servers have it, which
 * got it by another way, or earlier. A server that lacks it asks for it (recovery/doubt.c). A
 * result is found by its signature; it is the result that is asked for when its generation is
 * higher than what the asking server had heard of when it called. Servers of added members have
 * made no such call. So they are told only when every server of the tree has the result: a server
 * that is left can then always tell what became of the operation.
 *
 * Results of fences are not kept: they may carry much data.
 */
#include "common/tracker/rollup/rollup.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { DECIDED_MAX = 64, DECIDED_BYTES = 32 << 20 };

enum { LENGTH = 4 /* of a block, before its bytes */ };

struct decided *decided_find(const struct engine *engine, const void *sig, size_t siglen)
{
    struct decided *d;
    TAILQ_FOREACH (d, &engine->decided, all)
        if (d->siglen == siglen && memcmp(d->sig, sig, siglen) == 0)
            return d;
    return NULL;
}

/* Tells the servers that wait for it. */
static void tell(struct engine *engine, struct decided *d)
{
    decided_teller *say = d->tell;
    uint32_t *nodes = d->nodes, n = d->nnodes;
    struct shared_bytes *bytes = shared_bytes_hold(d->bytes);
    free(d->wait);
    d->wait = d->nodes = NULL;
    d->nwait = d->nnodes = 0;
    for (uint32_t i = 0; i < n; i++)
        say(engine, nodes[i], bytes);
    shared_bytes_drop(bytes);
    free(nodes);
}

static void forget(struct engine *engine, struct decided *d)
{
    TAILQ_REMOVE(&engine->decided, d, all);
    timer_stop(&d->due);
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

static void old_enough(void *arg, struct timer *due)
{
    struct decided *d = TIMER_OF(due, struct decided, due);
    tell(arg, d);
    forget(arg, d);
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
    timer_init(&d->due, engine->env.timers, old_enough, engine);
    timer_after(&d->due, ENGINE_STRAGGLER_MS);
    if (old != NULL) {
        tell(engine, old);
        forget(engine, old);
    }
    d->bytes = shared_bytes_hold(release->bytes);
    d->sig = d->bytes->data + LENGTH;
    d->siglen = t->siglen;
    d->generation = release->generation;
    d->op = release->op;
    TAILQ_INSERT_TAIL(&engine->decided, d, all);
    engine->ndecided++;
    engine->decided_bytes += d->bytes->len;
    make_room(engine);
    return d;
}

static void has(struct engine *engine, struct decided *d, uint32_t node)
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
                  uint32_t *nodes, uint32_t n, decided_teller *say)
{
    d->nodes = nodes;
    d->nnodes = n;
    d->tell = say;
    d->wait = calloc(t->tree.n, sizeof *d->wait);
    for (uint32_t i = 0; i < t->tree.n && d->wait != NULL; i++)
        if (i != t->self && !tracker_slot_lost(engine, t, i))
            d->wait[d->nwait++] = tracker_node(t, i);
    if (d->nwait == 0)
        tell(engine, d);
}

void decided_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    size_t siglen;
    const void *sig = wire_get_block(&frame->in, &siglen);
    uint64_t op = wire_get_u64(&frame->in);
    struct decided *d = wire_end(&frame->in) ? decided_find(engine, sig, siglen) : NULL;
    (void)t;
    if (d != NULL && d->op == op)
        has(engine, d, frame->from);
    else
        log_debug("tracker: node %u has a result that is not known here any more", frame->from);
}

void decided_lost(struct engine *engine, uint32_t node)
{
    struct decided *d;
    TAILQ_FOREACH (d, &engine->decided, all)
        has(engine, d, node);
}

void decided_forget(struct engine *engine, const char *nspace)
{
    struct decided *d = TAILQ_FIRST(&engine->decided);
    while (d != NULL) {
        bool named = signature_names(d->sig, d->siglen, nspace);
        if (named) {
            tell(engine, d);
            forget(engine, d);
        }
        d = named ? TAILQ_FIRST(&engine->decided) : TAILQ_NEXT(d, all);
    }
}

void decided_close(struct engine *engine)
{
    struct decided *d;
    while ((d = TAILQ_FIRST(&engine->decided)) != NULL)
        forget(engine, d);
}
