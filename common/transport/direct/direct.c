/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes the direct way, and takes others' announcements. */
#include "common/transport/direct/direct_private.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GIVE_WAY_MS = 200,     /* for the server with the lower index to connect */
    STOOD_STILL_MS = 1000, /* the loop is never that late while it runs */
};

/* ---- others' announcements ---- */

static void opened(struct peer *p, const void *secret, size_t len)
{
    struct direct *d = p->direct;
    unsigned char *said = p->said;
    struct announcement a;
    int64_t now = now_ms();
    p->said = NULL;
    p->way = WAY_UNKNOWN;
    bool good = secret != NULL && announce_get_secret(&d->own, p->node, secret, len, p->key) &&
                announce_fits(&d->own, p->key, said, p->said_len) &&
                announce_read(said, p->said_len, &a);
    if (!good) {
        free(said);
        peer_tell(p, false,
                  secret == NULL ? "its credential cannot be read, or is another user's"
                                 : "its announcement is not its own");
        return;
    }
    memcpy(p->proof, said + p->said_len - SEAL_PROOF, SEAL_PROOF);
    free(said);
    p->addresses = a.addresses;
    p->port = a.port;
    p->way = WAY_KNOWN;
    if (p->told_at != 0 && d->own.self > p->node && now < p->told_at + GIVE_WAY_MS) {
        p->again_at = now + GIVE_WAY_MS;
        timer_sooner(&d->delayed, p->again_at);
    }
    peer_connect(p, now);
}

static void on_vouched(void *arg, enum vouch_order order, uint32_t node, const void *out,
                       size_t len)
{
    struct direct *d = arg;
    if (d->stuck && voucher_waits_since(d->voucher) == 0) {
        log_info("transport: credentials are made and read again");
        d->stuck = false;
    }
    if (order == VOUCH_SEAL)
        direct_sealed(d, out, len);
    else
        opened(peer_find(d, node), out, len);
}

void direct_announced(struct direct *d, uint32_t from, const void *body, size_t len)
{
    struct announcement a;
    struct peer *p = d == NULL || d->closing ? NULL : peer_make(d, from);
    if (p == NULL || p->lost || p->way == WAY_OPENING || p->way == WAY_CONNECTING)
        return;
    if (!announce_read(body, len, &a)) {
        peer_tell(p, false, "its announcement cannot be read");
        return;
    }
    const unsigned char *proof = (const unsigned char *)body + len - SEAL_PROOF;
    if (p->way == WAY_KNOWN && memcmp(p->proof, proof, SEAL_PROOF) == 0) {
        peer_connect(p, now_ms()); /* it has no connection to us */
        return;
    }
    p->said = malloc(len);
    if (p->said == NULL)
        return;
    memcpy(p->said, body, len);
    p->said_len = len;
    p->way = WAY_OPENING;
    if (d->env.ops == NULL)
        opened(p, a.credential, a.len);
    else if (voucher_order(d->voucher, VOUCH_OPEN, from, a.credential, a.len))
        timer_sooner(&d->look, now_ms() + DIRECT_STUCK_MS);
    else
        opened(p, NULL, 0);
}

/* ---- frames ---- */

void direct_send(struct direct *d, uint32_t node, void *data, size_t len, struct shared_bytes *body,
                 enum frame_care care)
{
    size_t all = len + (body != NULL ? body->len : 0);
    struct peer *p = all <= RECORD_MAX ? peer_make(d, node) : NULL;
    bool up = p != NULL && peer_is_up(p), waits = p != NULL && !up && direct_is_required(d);
    struct outgoing *o = up || waits ? malloc(sizeof *o) : NULL;
    if (o != NULL)
        *o = (struct outgoing){
            .data = data, .len = len, .body = shared_bytes_hold(body), .care = care};
    if (o != NULL && up) {
        stream_send(p->current->stream, o);
        return;
    }
    if (o != NULL)
        peer_wait(p, o);
    if (p != NULL && !p->lost && !d->closing) {
        int64_t now = now_ms();
        direct_announce(p, now);
        peer_connect(p, now);
    }
    if (o == NULL)
        peer_send_natively(d, node, data, len, body, care);
}

static void receive(void *arg, struct stream *stream, const void *data, size_t len,
                    struct shared_bytes *whole)
{
    struct direct *d = arg;
    (void)stream;
    d->env.receive(d->env.arg, data, len, whole);
}

void direct_forget(struct direct *d, uint32_t node)
{
    struct peer *p = d != NULL ? peer_make(d, node) : NULL;
    struct connection *c;
    if (p == NULL || p->lost)
        return;
    p->lost = true;
    outgoing_free(peer_take_waiting(p));
    if (p->way == WAY_CONNECTING) {
        shakes_give_up(d->shakes, node);
        p->way = WAY_KNOWN;
    }
    TAILQ_FOREACH (c, &d->connections, entry)
        if (c->peer == p)
            stream_cut(c->stream, "that server was given up");
}

static void count(struct direct_peer *found, const struct outgoing *o)
{
    for (; o != NULL; o = o->next) {
        found->queued++;
        found->must += o->care == CARE_MUST;
        found->should += o->care == CARE_SHOULD;
        found->bytes += outgoing_len(o);
    }
}

struct direct_peer direct_peer(const struct direct *d, uint32_t node)
{
    struct direct_peer found = {0};
    const struct peer *p = d != NULL ? peer_find(d, node) : NULL;
    const struct connection *c;
    if (p == NULL)
        return found;
    found.up = peer_is_up(p);
    count(&found, p->waiting);
    TAILQ_FOREACH (c, &d->connections, entry)
        if (c->peer == p)
            count(&found, stream_pending(c->stream));
    return found;
}

void direct_hurry(struct direct *d)
{
    struct connection *c;
    if (d == NULL || d->hurry)
        return;
    d->hurry = true;
    TAILQ_FOREACH (c, &d->connections, entry)
        stream_hurry(c->stream);
}

/* ---- time ---- */

/* Once, until it goes again. */
static void look_at_voucher(void *arg, struct timer *timer)
{
    struct direct *d = arg;
    int64_t since = d->voucher != NULL ? voucher_waits_since(d->voucher) : 0;
    if (since == 0 || d->stuck)
        return;
    if (now_ms() < since + DIRECT_STUCK_MS) {
        timer_at(timer, since + DIRECT_STUCK_MS);
        return;
    }
    d->stuck = true;
    log_warning(
        "transport: credentials are neither made nor read, as by a munged that hangs: until "
        "it answers, there are no new direct connections, and %s",
        d->instead);
}

static void connect_delayed(void *arg, struct timer *timer)
{
    const struct direct *d = arg;
    int64_t now = now_ms();
    for (uint32_t i = 0; i < d->nbuckets; i++)
        for (struct peer *p = d->buckets[i]; p != NULL; p = p->next) {
            if (p->way != WAY_KNOWN || p->was_up || p->again_at == 0 || peer_is_up(p))
                continue;
            if (now >= p->again_at)
                peer_connect(p, now);
            else if (now + GIVE_WAY_MS >= p->again_at)
                timer_sooner(timer, p->again_at);
        }
}

/* Time is up for frames that have waited for a connection. */
static void give_up(struct peer *p)
{
    const struct direct *d = p->direct;
    char why[256];
    snprintf(why, sizeof why,
             "in %lld s there was no direct connection with it, which muster.json requires: %s",
             (long long)(d->env.patience / 1000),
             p->why != NULL          ? p->why
             : p->way == WAY_UNKNOWN ? "it has not said where it can be connected to"
                                     : "it has not been connected to");
    outgoing_free(peer_take_waiting(p));
    d->env.unreachable(d->env.arg, p->node, why);
}

static struct peer *next_waiting(const struct direct *d, const struct peer *after)
{
    uint32_t i = after != NULL ? after->node % d->nbuckets : 0;
    struct peer *p = after != NULL ? after->next : d->nbuckets > 0 ? d->buckets[0] : NULL;
    for (;; p = p->next) {
        while (p == NULL && ++i < d->nbuckets)
            p = d->buckets[i];
        if (p == NULL || p->waiting != NULL)
            return p;
    }
}

/* What keeps frames waiting is tried again, until time is up. Time in which this server itself
 * stood still does not count. */
static void look_at_waiting(void *arg, struct timer *timer)
{
    struct direct *d = arg;
    int64_t now = now_ms(), stood = now - d->looked_at - STOOD_STILL_MS;
    struct peer *late = NULL, *p = next_waiting(d, NULL);
    if (p == NULL)
        return;
    d->looked_at = now;
    for (; p != NULL; p = next_waiting(d, p)) {
        p->waits_since += stood > 0 ? stood : 0;
        if (now >= p->waits_since + d->env.patience)
            late = p;
        direct_announce(p, now);
        peer_connect(p, now);
    }
    timer_after(timer, WAITING_LOOK_MS);
    if (late != NULL)
        give_up(late);
}

/* ---- begin and end ---- */

static int listen_here(struct direct *d, struct err *err)
{
    const struct conf_direct *conf = d->env.conf;
    d->own.seal = d->env.seal(err);
    if (d->own.seal == NULL)
        return -1;
    if (!d->own.seal->random(d->own.key, sizeof d->own.key))
        return err_set(err, "libcrypto has no random numbers");
    if (addresses_own(conf->where, &d->addresses, err) != 0)
        return -1;
    int fd = addresses_listen(&d->addresses, conf->port, conf->ports, &d->port, err);
    if (fd < 0)
        return -1;
    d->shakes = shakes_new(&(struct shake_env){.arg = d,
                                               .base = d->env.base,
                                               .timers = d->env.timers,
                                               .own = &d->own,
                                               .sockets = d->env.sockets,
                                               .addresses = &d->addresses,
                                               .listener = fd,
                                               .up = peer_up,
                                               .failed = peer_failed});
    return d->shakes != NULL ? 0 : err_set(err, "out of memory");
}

static int begin(struct direct *d, struct err *err)
{
    d->streams = (struct stream_env){.arg = d,
                                     .sockets = d->env.sockets,
                                     .room = d->room,
                                     .receive = receive,
                                     .ended = peer_ended,
                                     .timers = d->env.timers};
    if (d->room == NULL || (d->env.ops != NULL && d->voucher == NULL))
        return err_set(err, "out of memory");
    if (listen_here(d, err) != 0)
        return -1;
    d->streams.seal = d->own.seal;
    direct_seal(d); /* it is there before anything is to be sent */
    return 0;
}

struct direct *direct_open(const struct direct_env *env, struct err *err)
{
    if (env->conf->mode == CONF_DIRECT_OFF)
        return NULL;
    struct direct *d = calloc(1, sizeof *d);
    if (d == NULL) {
        err_set(err, "out of memory");
        return NULL;
    }
    d->env = *env;
    if (d->env.sockets == NULL)
        d->env.sockets = &sockets_of_kernel;
    if (direct_is_required(d))
        snprintf(d->instead, sizeof d->instead, "messages wait, as muster.json requires one");
    else
        snprintf(d->instead, sizeof d->instead, "messages go by %s instead", env->native_name);
    d->own = (struct identity){.step = env->step, .self = env->self};
    timer_init(&d->look, env->timers, look_at_voucher, d);
    timer_init(&d->delayed, env->timers, connect_delayed, d);
    timer_init(&d->patient, env->timers, look_at_waiting, d);
    TAILQ_INIT(&d->connections);
    d->room = malloc((size_t)2 * STREAM_ROOM);
    if (env->ops != NULL)
        d->voucher = voucher_new(env->ops, env->base, on_vouched, d);
    if (begin(d, err) == 0)
        return d;
    direct_close(d, 0);
    return NULL;
}

void direct_close(struct direct *d, unsigned ms)
{
    struct connection *c;
    if (d == NULL)
        return;
    int64_t by = now_ms() + ms;
    d->closing = true;
    shakes_close(d->shakes);
    d->shakes = NULL;
    TAILQ_FOREACH (c, &d->connections, entry)
        stream_bye(c->stream);
    while (!TAILQ_EMPTY(&d->connections) && now_ms() < by &&
           d->env.turn(d->env.arg, deadline_left(by)))
        ;
    peers_free(d);
    voucher_free(d->voucher);
    wire_out_free(&d->credential);
    timer_stop(&d->look);
    timer_stop(&d->delayed);
    timer_stop(&d->patient);
    free(d->room);
    free(d);
}
