/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers, and the connections to them.
 *
 * Both of two servers may connect at once. Then that connection counts which the server with the
 * lower index has made, and the other server ends its own in order; frames that are under way on it
 * arrive. A second connection by the same server means that this one lost the first. */
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
 * them there are too many. @return whether there are not, or soon */
static bool make_room(struct direct *d, unsigned more, const struct connection *but)
{
    struct connection *c, *spare = NULL;
    unsigned open = 0;
    TAILQ_FOREACH (c, &d->connections, entry) {
        if (!stream_is_open(c->stream))
            continue;
        open++;
        if (c != but && stream_pending(c->stream) == NULL &&
            (spare == NULL || stream_used(c->stream) < stream_used(spare->stream)))
            spare = c;
    }
    if (open + more <= d->env.connections)
        return true;
    if (spare != NULL)
        stream_bye(spare->stream);
    return spare != NULL;
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

/* Whether the server with the lower index has made it. */
static bool is_senior(const struct connection *c)
{
    return c->ours == (c->peer->direct->own.self < c->peer->node);
}

/* Decides which of two connections counts. */
static void choose(struct peer *p, struct connection *c)
{
    struct connection *old = p->current;
    if (old != NULL && stream_is_open(old->stream) && is_senior(old) && !is_senior(c)) {
        if (c->ours)
            stream_bye(c->stream);
        return;
    }
    p->current = c;
    if (old == NULL || !stream_is_open(old->stream))
        return;
    if (old->ours == c->ours)
        stream_cut(old->stream, "there is a newer one");
    else if (old->ours)
        stream_bye(old->stream);
}

void peer_send_natively(struct direct *d, uint32_t node, void *data, size_t len,
                        const struct shared_bytes *body, enum frame_care care)
{
    if (direct_is_required(d)) {
        log_error("a frame of %zu bytes to %s is lost: it is too long, or memory is used up",
                  len + (body != NULL ? body->len : 0), d->env.name(d->env.arg, node));
        free(data);
        return;
    }
    data = shared_bytes_join(data, &len, body);
    if (data != NULL)
        d->env.native(d->env.arg, node, data, len, care);
    else
        log_error("a frame to node %u is lost: out of memory", node);
}

/* What a connection has not delivered goes by another one of that server, or natively. */
static void send_again(struct peer *p, struct outgoing *list)
{
    struct direct *d = p->direct;
    while (list != NULL) {
        struct outgoing *o = list;
        list = o->next;
        if (peer_is_up(p)) {
            stream_send(p->current->stream, o);
            continue;
        }
        if (direct_is_required(d)) {
            o->next = NULL;
            peer_wait(p, o);
            continue;
        }
        peer_send_natively(d, p->node, o->data, o->len, o->body, o->care);
        shared_bytes_drop(o->body);
        free(o);
    }
}

void peer_up(void *arg, uint32_t node, int fd, struct seal *seal, bool ours)
{
    struct direct *d = arg;
    struct peer *p = peer_make(d, node);
    struct connection *c = p != NULL && !p->lost && !d->closing ? calloc(1, sizeof *c) : NULL;
    if (p != NULL && p->way == WAY_CONNECTING && (ours || d->own.self > node)) {
        shakes_give_up(d->shakes, node); /* ours is not needed, if it is not this one */
        p->way = WAY_KNOWN;
    }
    if (c == NULL) {
        d->own.seal->destroy(seal);
        d->streams.sockets->close(fd);
        return;
    }
    c->peer = p;
    c->ours = ours;
    c->since = now_ms();
    c->stream = stream_new(&d->streams, d->env.base, fd, seal, c);
    if (c->stream == NULL) {
        free(c);
        return;
    }
    TAILQ_INSERT_TAIL(&d->connections, c, entry);
    d->nconnections++;
    log_info("transport: a direct connection %s %s, number %u", ours ? "to" : "from",
             d->env.name(d->env.arg, node), d->nconnections);
    p->was_up = true;
    p->has_failed = false;
    p->again_at = 0;
    free(p->why);
    p->why = NULL;
    choose(p, c);
    send_again(p, peer_take_waiting(p));
    if (d->hurry)
        stream_hurry(c->stream);
    make_room(d, 0, c);
    d->env.heard(d->env.arg, node);
}

void peer_ended(void *arg, struct stream *stream, const char *why)
{
    struct direct *d = arg;
    struct connection *c = stream_owner(stream), *other;
    struct peer *p = c->peer;
    struct outgoing *rest = stream_take_pending(stream);
    int64_t lasted = now_ms() - c->since;
    bool ends = stream_peer_closed(stream);
    TAILQ_REMOVE(&d->connections, c, entry);
    d->nconnections--;
    if (p->current == c) {
        p->current = NULL;
        TAILQ_FOREACH (other, &d->connections, entry)
            if (other->peer == p && stream_is_open(other->stream))
                p->current = other;
    }
    stream_free(stream);
    free(c);
    if (lasted >= STEADY_MS || direct_is_required(d))
        p->backoff = first_backoff(d);
    if (why != NULL && !p->lost && p->current == NULL) {
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
    send_again(p, rest);
}

void peers_free(struct direct *d)
{
    while (!TAILQ_EMPTY(&d->connections))
        peer_ended(d, TAILQ_FIRST(&d->connections)->stream, "this server leaves");
    for (uint32_t i = 0; i < d->nbuckets; i++)
        while (d->buckets[i] != NULL) {
            struct peer *p = d->buckets[i];
            d->buckets[i] = p->next;
            free(p->said);
            free(p->why);
            outgoing_free(p->waiting);
            free(p);
        }
    free(d->buckets);
}
