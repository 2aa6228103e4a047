/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers, and the connection to each.
 *
 * Both of two servers may connect at once. Then that connection counts which the server with the
 * lower index has made; what was under way on the other one is sent again. */
#include "common/transport/direct/direct_private.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUCKETS = 64,
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 60000,
    BACKOFF_WAITING_MS = 2000, /* where messages wait for it */
    STEADY_MS = 10000,         /* a connection that has lasted so long was a good one */
    FULL_MS = 1000,            /* until a look whether one of our connections can be spared */
    WARNINGS = 4,
};

struct peer *peer_find(const struct direct *d, uint32_t node)
{
    struct peer *p = d->nbuckets > 0 ? d->buckets[node % d->nbuckets] : NULL;
    while (p != NULL && p->node != node)
        p = p->next;
    return p;
}

static void grow(struct direct *d)
{
    uint32_t n = d->nbuckets > 0 ? 2 * d->nbuckets : BUCKETS;
    struct peer **buckets = calloc(n, sizeof *buckets);
    if (buckets == NULL)
        return;
    for (uint32_t i = 0; i < d->nbuckets; i++)
        while (d->buckets[i] != NULL) {
            struct peer *p = d->buckets[i];
            d->buckets[i] = p->next;
            p->next = buckets[p->node % n];
            buckets[p->node % n] = p;
        }
    free(d->buckets);
    d->buckets = buckets;
    d->nbuckets = n;
}

static unsigned first_backoff(const struct direct *d)
{
    return direct_is_required(d) ? WAITING_LOOK_MS : BACKOFF_FIRST_MS;
}

struct peer *peer_make(struct direct *d, uint32_t node)
{
    struct peer *p = peer_find(d, node);
    if (p != NULL)
        return p;
    if (d->npeers >= 2 * d->nbuckets)
        grow(d);
    p = d->nbuckets > 0 ? calloc(1, sizeof *p) : NULL;
    if (p == NULL)
        return NULL;
    p->direct = d;
    p->node = node;
    p->backoff = first_backoff(d);
    p->next = d->buckets[node % d->nbuckets];
    d->buckets[node % d->nbuckets] = p;
    d->npeers++;
    return p;
}

void peer_tell(struct peer *p, bool ends, const char *why)
{
    struct direct *d = p->direct;
    bool loud = !ends && !d->closing && !d->hurry && d->warned < WARNINGS;
    d->warned += loud;
    free(p->why);
    p->why = strdup(why);
    log_write(loud ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "transport: no direct connection with %s: %s; %s%s", d->env.name(d->env.arg, p->node),
              why, d->instead,
              loud && d->warned == WARNINGS ? "; more such lines are of level info" : "");
}

static void try_later(struct peer *p)
{
    unsigned most = direct_is_required(p->direct) ? BACKOFF_WAITING_MS : BACKOFF_MAX_MS;
    p->again_at = now_ms() + p->backoff;
    p->backoff = 2 * p->backoff < most ? 2 * p->backoff : most;
}

/* Ends the connection that was used least recently and has nothing under way, when with @p more of
 * them there are too many. @return whether there are not */
static bool make_room(struct direct *d, unsigned more, const struct peer *but)
{
    struct peer *spare = NULL;
    if (d->nconnections + more <= d->env.connections)
        return true;
    for (struct peer *p = peers_next(d, NULL); p != NULL; p = peers_next(d, p))
        if (p != but && peer_is_up(p) && !peer_is_owed(p) &&
            (spare == NULL || stream_used(p->stream) < stream_used(spare->stream)))
            spare = p;
    if (spare != NULL)
        stream_bye(spare->stream);
    return spare != NULL;
}

void peer_wait(struct peer *p)
{
    struct direct *d = p->direct;
    if (p->waits_since != 0)
        return;
    p->waits_since = now_ms();
    if (timer_runs(&d->patient))
        return;
    d->looked_at = p->waits_since;
    timer_after(&d->patient, WAITING_LOOK_MS);
}

void peer_connect(struct peer *p, int64_t now)
{
    struct direct *d = p->direct;
    if (p->way != WAY_KNOWN || p->lost || d->closing || (d->hurry && !direct_is_required(d)) ||
        peer_is_up(p) || now < p->again_at)
        return;
    if (!make_room(d, 1, NULL)) {
        p->again_at = now + FULL_MS;
        return;
    }
    p->way = WAY_CONNECTING;
    shakes_connect(d->shakes, p->node, &p->addresses, p->port, p->key);
}

void peer_failed(void *arg, uint32_t node, const char *why)
{
    struct peer *p = peer_find(arg, node);
    if (p == NULL)
        return;
    p->way = WAY_KNOWN;
    if (peer_is_up(p))
        return;
    /* At first it may just have left, and that be on its way to us. */
    peer_tell(p, p->was_up || !p->has_failed, why);
    p->has_failed = true;
    try_later(p);
}

/* Frames go by the next connection of that server, wait for one, or go natively. */
static void go_on(struct peer *p)
{
    const struct direct *d = p->direct;
    bool waits = direct_is_required(d) && !p->lost && !d->closing;
    if (p->stream == NULL && waits && peer_is_owed(p))
        peer_wait(p);
    link_again(d->env.link, p->node, p->stream == NULL && !waits);
}

static void drop_stream(struct peer *p)
{
    p->direct->nconnections -= p->stream != NULL;
    stream_free(p->stream);
    p->stream = NULL;
}

/* Whether another connection is the one that counts: the one which the server with the lower index
 * has made. A second one by the same server means that it has lost the first. */
static bool is_junior(const struct peer *p, bool ours)
{
    bool senior = p->direct->own.self < p->node;
    return peer_is_up(p) && p->ours == senior && ours != senior;
}

void peer_up(void *arg, uint32_t node, int fd, struct seal *seal, bool ours)
{
    struct direct *d = arg;
    struct peer *p = peer_make(d, node);
    bool wanted = p != NULL && !p->lost && !d->closing;
    if (p != NULL && p->way == WAY_CONNECTING && (ours || d->own.self > node)) {
        shakes_give_up(d->shakes, node); /* ours is not needed, if it is not this one */
        p->way = WAY_KNOWN;
    }
    if (!wanted) {
        d->own.seal->destroy(seal);
        d->streams.sockets->close(fd);
        return;
    }
    struct stream *stream = stream_new(&d->streams, d->env.base, fd, seal, p);
    bool junior = is_junior(p, ours);
    if (stream == NULL)
        return;
    if (junior || p->stream != NULL) /* there are two of them */
        stream_bye(junior ? stream : p->stream);
    if (junior) {
        stream_free(stream);
        return;
    }
    drop_stream(p);
    p->stream = stream;
    p->ours = ours;
    p->since = now_ms();
    d->nconnections++;
    log_info("transport: a direct connection %s %s, number %u", ours ? "to" : "from",
             d->env.name(d->env.arg, node), d->nconnections);
    p->was_up = true;
    p->has_failed = false;
    p->again_at = p->waits_since = 0;
    free(p->why);
    p->why = NULL;
    go_on(p);
    make_room(d, 0, p);
    d->env.heard(d->env.arg, node);
}

void peer_ended(void *arg, struct stream *stream, const char *why)
{
    struct direct *d = arg;
    struct peer *p = stream_owner(stream);
    int64_t lasted = now_ms() - p->since;
    bool ends = stream_peer_closed(stream);
    drop_stream(p);
    if (lasted >= STEADY_MS || direct_is_required(d))
        p->backoff = first_backoff(d);
    if (why != NULL && !p->lost) {
        peer_tell(p, ends, why);
        try_later(p);
        /* A server that leaves says BYE, so this one may have died. Only the native way knows, and
         * perhaps nothing else is to be sent. */
        p->told_at = 0;
        if (ends && !d->closing && !d->hurry)
            direct_announce(p, now_ms());
    } else {
        log_debug("transport: a direct connection with %s has ended: %s",
                  d->env.name(d->env.arg, p->node), why != NULL ? why : "in order");
    }
    go_on(p);
}

void peers_free(struct direct *d)
{
    struct peer *next;
    for (struct peer *p = peers_next(d, NULL); p != NULL; p = next) {
        next = peers_next(d, p);
        drop_stream(p);
        go_on(p);
        free(p->said);
        free(p->why);
        free(p);
    }
    free(d->buckets);
}
