/* SPDX-License-Identifier: BSD-3-Clause */
/* Other servers: what they have not acknowledged, and what this one has to acknowledge. */
#include "common/transport/link_private.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <stdlib.h>

enum {
    PEERS_MIN = 32,
    ACK_MS = 20,           /* what was taken is said by then, if no frame brings it along */
    PROGRESS_MS = 5000,    /* until the peer has acknowledged something of what was sent */
    STOOD_STILL_MS = 1000, /* the loop is never that late while it runs */
    MALLOC_BYTES = 32,     /* for the two places of a frame */
};

/* @return where the table has the peer, or would have it; the table has room */
static struct link_peer **place_of(struct link_peer **peers, uint32_t cap, uint32_t node)
{
    uint32_t i = node * 0x9e3779b1u & (cap - 1);
    while (peers[i] != NULL && peers[i]->node != node)
        i = (i + 1) & (cap - 1);
    return &peers[i];
}

struct link_peer *link_peer_find(const struct link *link, uint32_t node)
{
    return link->cap > 0 ? *place_of(link->peers, link->cap, node) : NULL;
}

static bool make_room(struct link *link)
{
    uint32_t cap = link->cap > 0 ? 2 * link->cap : PEERS_MIN;
    if (2 * (link->npeers + 1) <= link->cap)
        return true;
    struct link_peer **peers = calloc(cap, sizeof *peers);
    if (peers == NULL)
        return false;
    for (uint32_t i = 0; i < link->cap; i++)
        if (link->peers[i] != NULL)
            *place_of(peers, cap, link->peers[i]->node) = link->peers[i];
    free(link->peers);
    link->peers = peers;
    link->cap = cap;
    return true;
}

static timer_fire on_due;

struct link_peer *link_peer_at(struct link *link, uint32_t node)
{
    struct link_peer *peer = link_peer_find(link, node);
    if (peer != NULL)
        return peer;
    peer = make_room(link) ? calloc(1, sizeof *peer) : NULL;
    if (peer == NULL)
        return NULL;
    peer->link = link;
    peer->node = node;
    timer_init(&peer->due, link->env.timers, on_due, peer);
    link->npeers++;
    return *place_of(link->peers, link->cap, node) = peer;
}

void link_put_header(const struct link *link, uint64_t number, struct wire_out *out)
{
    wire_put_u32(out, 0); /* the length */
    wire_put_u64(out, link->env.step);
    wire_put_u32(out, link->env.self);
    wire_put_u64(out, number);
}

/* ---- what is kept ---- */

struct outgoing *outgoing_new(void *data, size_t len, struct shared_bytes *body,
                              enum frame_care care, uint64_t number)
{
    struct outgoing *o = malloc(sizeof *o);
    if (o == NULL)
        free(data);
    else
        *o = (struct outgoing){.owners = 1,
                               .number = number,
                               .data = data,
                               .len = len,
                               .body = shared_bytes_hold(body),
                               .care = care};
    return o;
}

size_t outgoing_len(const struct outgoing *o)
{
    return o->len + (o->body != NULL ? o->body->len : 0);
}

void outgoing_drop(struct outgoing *o)
{
    if (o == NULL || --o->owners > 0)
        return;
    free(o->data);
    shared_bytes_drop(o->body);
    free(o);
}

static void count(struct link_peer *peer, const struct outgoing *o, int n)
{
    struct link_owed *owed = &peer->owed;
    size_t should = o->care == CARE_SHOULD ? outgoing_len(o) + sizeof *o + MALLOC_BYTES : 0;
    peer->link->should += n > 0 ? should : -should;
    owed->frames += (uint32_t)n;
    owed->must += o->care == CARE_MUST ? (uint32_t)n : 0;
    owed->should += o->care == CARE_SHOULD ? (uint32_t)n : 0;
    owed->bytes += n > 0 ? outgoing_len(o) : -(uint64_t)outgoing_len(o);
}

void link_peer_await_progress(struct link_peer *peer)
{
    bool awaited = peer->kept != NULL && peer->direct;
    peer->progress_by = awaited ? timers_now(peer->link->env.timers) + PROGRESS_MS : 0;
    timer_sooner(&peer->due, peer->progress_by);
}

static void ready(const struct link_peer *peer)
{
    const struct link_env *env = &peer->link->env;
    if (env->ready != NULL)
        env->ready(env->arg, peer->node);
}

/* The present way has something to take. */
static void offer(const struct link_peer *peer)
{
    const struct link_env *env = &peer->link->env;
    if (peer->direct)
        ready(peer);
    else if (peer->next != NULL && !env->required)
        env->native(env->arg, peer->node);
}

void link_peer_restart(struct link_peer *peer, bool direct)
{
    peer->direct = direct;
    peer->next = peer->kept;
    peer->asked = false;
    link_peer_await_progress(peer);
}

void link_peer_keep(struct link_peer *peer, struct outgoing *o)
{
    const struct link_env *env = &peer->link->env;
    bool direct = env->connect != NULL && env->connect(env->arg, peer->node);
    if (direct != peer->direct)
        link_peer_restart(peer, direct);
    if (peer->kept == NULL)
        peer->end = &peer->kept;
    *peer->end = o;
    peer->end = &o->next;
    if (peer->next == NULL)
        peer->next = o;
    count(peer, o, 1);
    if (peer->progress_by == 0)
        link_peer_await_progress(peer);
    offer(peer);
}

struct outgoing *link_peer_pop(struct link_peer *peer)
{
    struct outgoing *o = peer->kept;
    peer->kept = o->next;
    if (peer->next == o)
        peer->next = o->next;
    o->next = NULL;
    count(peer, o, -1);
    return o;
}

void link_peer_free_kept(struct link_peer *peer)
{
    timer_stop(&peer->due);
    while (peer->kept != NULL)
        outgoing_drop(link_peer_pop(peer));
    while (peer->loose != NULL) {
        struct outgoing *o = peer->loose;
        peer->loose = o->next;
        outgoing_drop(o);
    }
}

struct link_owed link_owed(const struct link *link, uint32_t node)
{
    const struct link_peer *peer = link_peer_find(link, node);
    struct link_owed owed = peer != NULL ? peer->owed : (struct link_owed){0};
    if (peer != NULL && link->hurry && !peer->forgotten && peer->taken < peer->natively)
        owed.must++;
    return owed;
}

bool link_is_full(const struct link *link, uint32_t node)
{
    return link->should > LINK_FULL && link_owed(link, node).bytes > LINK_SHARE;
}

void link_peer_told(struct link_peer *peer)
{
    peer->ack_now = false;
    peer->ack_by = 0;
}

void link_again(struct link *link, uint32_t node, bool natively)
{
    struct link_peer *peer = link_peer_find(link, node);
    if (peer == NULL)
        return;
    if (natively) /* what the peer sends again tells it */
        link_peer_told(peer);
    if (!natively || peer->direct)
        link_peer_restart(peer, !natively);
    offer(peer);
}

void link_forget(struct link *link, uint32_t node)
{
    struct link_peer *peer = link_peer_at(link, node);
    if (peer == NULL)
        return;
    peer->forgotten = true;
    while (peer->kept != NULL)
        outgoing_drop(link_peer_pop(peer));
}

void link_peer_took(struct link_peer *peer, uint64_t taken, bool hurry)
{
    if (taken > peer->numbers) {
        log_warning("node %u has taken frames that were not sent to it", peer->node);
        return;
    }
    if (taken > peer->taken)
        peer->taken = taken;
    bool more = peer->kept != NULL && peer->kept->number <= taken;
    while (peer->kept != NULL && peer->kept->number <= taken)
        outgoing_drop(link_peer_pop(peer));
    if (more)
        link_peer_await_progress(peer);
    if (!hurry || peer->hurried) /* two that leave would ask each other on and on */
        return;
    peer->hurried = true;
    peer->ack_now = true;
    ready(peer);
}

/* ---- what is acknowledged ---- */

bool link_peer_put_taken(const struct link_peer *peer, struct wire_out *out)
{
    if (peer->ack_by == 0 && !peer->ack_now)
        return false;
    wire_put_u8(out, FRAME_TAKEN);
    wire_put_u64(out, peer->window != NULL ? peer->window->low : 0);
    return true;
}

void link_peer_owes_ack(struct link_peer *peer)
{
    struct timers *timers = peer->link->env.timers;
    if (peer->ack_by != 0 || timers == NULL)
        return;
    peer->ack_by = timers_now(timers) + ACK_MS;
    timer_sooner(&peer->due, peer->ack_by);
}

void link_peer_acknowledge(struct link_peer *peer)
{
    if (peer->ack_by == 0 || peer->ack_now || !(peer->hurried || peer->link->hurry))
        return;
    peer->ack_now = true;
    ready(peer);
}

/* @return a frame that says only what was taken, or NULL when out of memory */
static struct outgoing *make_taken(struct link_peer *peer)
{
    const struct link *link = peer->link;
    struct wire_out out = {0};
    size_t len;
    link_put_header(link, 0, &out);
    wire_put_u8(&out, FRAME_TAKEN);
    wire_put_u64(&out, peer->window != NULL ? peer->window->low : 0);
    wire_put_u8(&out, link->hurry);
    wire_set_u32(&out, 0, (uint32_t)(out.len - 4));
    void *data = out.failed ? NULL : wire_out_take(&out, &len);
    wire_out_free(&out);
    struct outgoing *o = data != NULL ? outgoing_new(data, len, NULL, CARE_MAY, 0) : NULL;
    if (o == NULL)
        return NULL;
    link_peer_told(peer);
    peer->asked = link->hurry;
    return o;
}

struct outgoing *link_next(struct link *link, uint32_t node)
{
    struct link_peer *peer = link_peer_find(link, node);
    if (peer == NULL)
        return NULL;
    bool ask = link->hurry && !peer->asked && peer->kept != NULL;
    struct outgoing *o = peer->ack_now || ask ? make_taken(peer) : NULL;
    if (o != NULL)
        return o;
    if (peer->direct && (o = peer->next) != NULL) {
        peer->next = o->next;
        o->owners++;
    }
    return o;
}

/* A time that has passed while this server itself stood still, as when it was stopped, says nothing
 * of the peer. */
static bool is_stuck(struct link_peer *peer, int64_t now)
{
    if (peer->progress_by == 0 || now < peer->progress_by)
        return false;
    bool late = now < peer->progress_by + STOOD_STILL_MS;
    peer->progress_by = now + PROGRESS_MS;
    return late;
}

static void on_due(void *arg, struct timer *timer)
{
    struct link_peer *peer = arg;
    const struct link_env *env = &peer->link->env;
    int64_t now = timers_now(env->timers);
    if (peer->ack_by != 0 && now >= peer->ack_by) {
        peer->ack_by = 0;
        peer->ack_now = true;
        ready(peer);
    }
    bool stuck = is_stuck(peer, now);
    timer_at(timer, earlier(peer->ack_by, peer->progress_by));
    if (stuck)
        env->stuck(env->arg, peer->node);
}
