/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes the direct way, and takes others' announcements. */
#include "common/transport/direct/direct_private.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STOOD_STILL_MS = 1000, /* the loop is never that late while it runs */
    MOVED_MS = 5000,       /* as long is a peer alive whose kernel has made room */
};

/* ---- others' announcements ---- */

static void opened(struct peer *p, const void *secret, size_t len)
{
    struct direct *d = p->direct;
    unsigned char *said = p->said;
    struct announcement a;
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
    peer_connect(p, now_ms());
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

bool direct_connect(struct direct *d, uint32_t node)
{
    struct peer *p = d != NULL && !d->closing ? peer_make(d, node) : NULL;
    if (p == NULL || p->lost)
        return false;
    if (peer_is_up(p))
        return true;
    int64_t now = now_ms();
    if (direct_is_required(d))
        peer_wait(p);
    direct_announce(p, now);
    peer_connect(p, now);
    return direct_is_required(d);
}

void direct_ready(struct direct *d, uint32_t node)
{
    const struct peer *p = d != NULL ? peer_find(d, node) : NULL;
    if (p != NULL && peer_is_up(p))
        stream_write(p->stream);
}

void direct_stuck(struct direct *d, uint32_t node)
{
    const struct peer *p = d != NULL ? peer_find(d, node) : NULL;
    if (p != NULL && peer_is_up(p) && now_ms() >= stream_moved(p->stream) + MOVED_MS)
        stream_cut(p->stream, "it takes nothing any more");
}

static struct outgoing *next(void *arg, struct stream *stream)
{
    const struct direct *d = arg;
    const struct peer *p = stream_owner(stream);
    return link_next(d->env.link, p->node);
}

static void receive(void *arg, struct stream *stream, const void *data, size_t len,
                    struct shared_bytes *whole)
{
    struct direct *d = arg;
    (void)stream;
    link_receive(d->env.link, data, len, whole, true);
}

void direct_forget(struct direct *d, uint32_t node)
{
    struct peer *p = d != NULL ? peer_make(d, node) : NULL;
    if (p == NULL || p->lost)
        return;
    p->lost = true;
    p->waits_since = 0;
    if (p->way == WAY_CONNECTING) {
        shakes_give_up(d->shakes, node);
        p->way = WAY_KNOWN;
    }
    if (p->stream != NULL)
        stream_cut(p->stream, "that server was given up");
}

bool direct_is_up(const struct direct *d, uint32_t node)
{
    const struct peer *p = d != NULL ? peer_find(d, node) : NULL;
    return p != NULL && peer_is_up(p);
}

void direct_hurry(struct direct *d)
{
    if (d != NULL)
        d->hurry = true;
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
    p->waits_since = 0;
    d->env.unreachable(d->env.arg, p->node, why);
}

/* What keeps frames waiting is tried again, until time is up. Time in which this server itself
 * stood still does not count. */
static void look_at_waiting(void *arg, struct timer *timer)
{
    struct direct *d = arg;
    int64_t now = now_ms(), stood = now - d->looked_at - STOOD_STILL_MS;
    struct peer *late = NULL;
    d->looked_at = now;
    for (struct peer *p = peers_next(d, NULL); p != NULL; p = peers_next(d, p)) {
        if (p->waits_since == 0)
            continue;
        p->waits_since += stood > 0 ? stood : 0;
        if (now >= p->waits_since + d->env.patience)
            late = p;
        direct_announce(p, now);
        peer_connect(p, now);
        timer_sooner(timer, now + WAITING_LOOK_MS);
    }
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
                                     .next = next,
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
    timer_init(&d->patient, env->timers, look_at_waiting, d);
    d->room = malloc((size_t)2 * STREAM_ROOM);
    if (env->ops != NULL)
        d->voucher = voucher_new(env->ops, env->base, on_vouched, d);
    if (begin(d, err) == 0)
        return d;
    direct_close(d, 0);
    return NULL;
}

/* Whether a connection has something under way. */
static bool is_owed(const struct direct *d)
{
    const struct peer *p = peers_next(d, NULL);
    while (p != NULL && !(peer_is_up(p) && peer_is_owed(p)))
        p = peers_next(d, p);
    return p != NULL;
}

void direct_close(struct direct *d, unsigned ms)
{
    if (d == NULL)
        return;
    int64_t by = now_ms() + ms;
    d->closing = true;
    shakes_close(d->shakes);
    d->shakes = NULL;
    while (is_owed(d) && now_ms() < by && d->env.turn(d->env.arg, deadline_left(by)))
        ;
    for (struct peer *p = peers_next(d, NULL); p != NULL; p = peers_next(d, p))
        if (p->stream != NULL)
            stream_bye(p->stream);
    peers_free(d);
    voucher_free(d->voucher);
    wire_out_free(&d->credential);
    timer_stop(&d->look);
    timer_stop(&d->patient);
    free(d->room);
    free(d);
}
