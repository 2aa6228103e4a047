/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes to other servers: a window of messages under way to each, then one with all that was
 * queued meanwhile. What fails is sent again, with all behind it, until the peer counts as lost:
 * the link beyond drops what comes twice and sorts what comes late. */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_MAX = 16 << 20, /* bytes that are sent at once, unless one frame is longer */
    SLOWEST = 256,          /* bytes a millisecond, for a message that has to wait for others */
    STOOD_STILL_MS = 500,   /* the loop is never that late while it runs */
};

static const char LEFT[] = "it has left, for its tasks have ended";

static void free_list(struct outgoing *list)
{
    while (list != NULL) {
        struct outgoing *next = list->next;
        free(list->data);
        free(list);
        list = next;
    }
}

void peers_free(struct rm *rm)
{
    for (uint32_t node = 0; node < rm->npeers; node++) {
        free_list(rm->peers[node]->queue);
        free_list(rm->peers[node]->sent);
    }
    free(rm->peers);
    free(rm->own);
}

static void drop_all(struct peer *peer)
{
    free_list(peer->queue);
    free_list(peer->sent);
    peer->queue = peer->sent = NULL;
    peer->tail = &peer->queue;
    peer->sent_tail = &peer->sent;
    peer->messages = 0;
    peer->bytes = 0;
}

/* peers_tell() says so to the server. What goes to a server that is given up already, and does not
 * arrive, is dropped (CARE_MAY). */
static void give_up(struct peer *peer, enum rm_peer_event event, const char *why)
{
    bool lost = rm_peer_is_lost(peer->state);
    if (!rm_peer_move(&peer->state, event, peer->name) && !lost)
        return;
    drop_all(peer);
    if (lost)
        return;
    peer->tell = true;
    snprintf(peer->why, sizeof peer->why, "%s", why);
}

void peer_lose(struct rm *rm, uint32_t node, const char *why)
{
    give_up(rm->peers[node], RM_PEER_LOSE, why);
}

void peers_lose(struct rm *rm, const char *why)
{
    for (uint32_t node = 0; node < rm->npeers; node++)
        if (node != rm->boot->node)
            peer_lose(rm, node, why);
}

void peers_tell(struct rm *rm)
{
    for (uint32_t node = 0; node < rm->npeers; node++) {
        struct peer *peer = rm->peers[node];
        if (!peer->tell)
            continue;
        peer->tell = false;
        if (!rm->closing)
            rm->host.lost(rm->host.arg, node, peer->why);
    }
}

/* Moves as much of the queue as makes one message to what is under way, and writes it. */
static flux_msg_t *take(struct rm *rm, uint32_t node, uint32_t tag)
{
    struct peer *peer = rm->peers[node];
    struct wire_out out = {0};
    struct outgoing *o;
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, rm->job);
    wire_put_u32(&out, rm->boot->node);
    wire_put_u32(&out, rm->brokers[rm->boot->node]);
    wire_put_u64(&out, peer->job);
    wire_put_u32(&out, peer->node);
    size_t head = out.len;
    while ((o = peer->queue) != NULL && (out.len == head || out.len + o->len <= MESSAGE_MAX)) {
        wire_put_raw(&out, o->data, o->len);
        peer->queue = o->next;
        o->next = NULL;
        o->tag = tag;
        peer->bytes += o->len;
        *peer->sent_tail = o;
        peer->sent_tail = &o->next;
    }
    if (peer->queue == NULL)
        peer->tail = &peer->queue;
    peer->messages++;
    return broker_request("muster.send", peer->broker, &out);
}

/* An answer is awaited anew after each, as long as something is under way. */
static void await(struct rm *rm, struct peer *peer)
{
    peer->answer_by = now_ms() + rm->peer_ms + (int64_t)(peer->bytes / SLOWEST);
}

void peer_push(struct rm *rm, uint32_t node)
{
    struct peer *peer = rm->peers[node];
    while (peer->queue != NULL && peer->messages < PACKET_WINDOW_MESSAGES &&
           peer->bytes < PACKET_WINDOW_BYTES && rm->broker == BROKER_KNOWS &&
           peer->not_before <= now_ms()) {
        if (peer->state == RM_PEER_AWAY) {
            peer_lose(rm, node, LEFT);
            return;
        }
        if (!peer->placed) {
            peer->other->wanted = true; /* others_tick() */
            return;
        }
        bool first = peer->sent == NULL;
        uint32_t tag = broker_tag(rm);
        flux_msg_t *msg = take(rm, node, tag);
        if (first)
            await(rm, peer);
        broker_send(rm, msg, tag);
    }
}

/* Counts what is under way again, from its list. */
static void recount(struct peer *peer)
{
    uint32_t tag = 0;
    peer->messages = 0;
    peer->bytes = 0;
    peer->sent_tail = &peer->sent;
    for (struct outgoing *o = peer->sent; o != NULL; o = o->next) {
        peer->messages += o->tag != tag;
        tag = o->tag;
        peer->bytes += o->len;
        peer->sent_tail = &o->next;
    }
}

/* What is under way from that message on is queued again, before all else. */
static void put_back(struct peer *peer, uint32_t tag)
{
    struct outgoing **from = &peer->sent;
    while ((*from)->tag != tag)
        from = &(*from)->next;
    if (peer->queue == NULL)
        peer->tail = peer->sent_tail;
    *peer->sent_tail = peer->queue;
    peer->queue = *from;
    *from = NULL;
    recount(peer);
}

/* That message has arrived, and all before it. */
static void arrived(struct peer *peer, uint32_t tag)
{
    struct outgoing **last = &peer->sent, *rest;
    while ((*last)->tag != tag)
        last = &(*last)->next;
    while (*last != NULL && (*last)->tag == tag)
        last = &(*last)->next;
    rest = *last;
    *last = NULL;
    free_list(peer->sent);
    peer->sent = rest;
    recount(peer);
}

static void failed(struct rm *rm, uint32_t node, uint32_t tag, int rc, const char *why)
{
    struct peer *peer = rm->peers[node];
    int64_t now = now_ms();
    put_back(peer, tag);
    peer->retries++;
    if (peer->failing_since == 0) {
        peer->failing_since = now;
        peer->retry_ms = RM_RETRY_FIRST_MS;
        log_debug("transport: %s (node %u) is not reached yet: %s", peer->name, peer->node, why);
    }
    if (rc == ESHUTDOWN) {
        rm_peer_move(&peer->state, RM_PEER_PART, peer->name);
        peer_lose(rm, node, LEFT);
        return;
    }
    if (rm_peer_is_lost(peer->state)) {
        drop_all(peer);
        return;
    }
    bool never = rc == EPERM || rc == EPROTO || rc == EINVAL || rc == EMSGSIZE;
    if (never || now >= peer->failing_since + rm->peer_ms) {
        peer_lose(rm, node, why);
        return;
    }
    peer->not_before = now + peer->retry_ms;
    peer->retry_ms = peer->retry_ms * 2 > RM_RETRY_MAX_MS ? RM_RETRY_MAX_MS : peer->retry_ms * 2;
}

/* Flux's own word for a module that is not there names no remedy. */
static const char *explain(int rc, const char *why)
{
    return rc == ENOSYS ? "muster's module is not loaded in its broker: " LOAD_MODULE : why;
}

static bool is_under_way(const struct peer *peer, uint32_t tag)
{
    const struct outgoing *o = peer->sent;
    while (o != NULL && o->tag != tag)
        o = o->next;
    return o != NULL;
}

void peer_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg)
{
    const void *data;
    size_t len;
    uint32_t node = 0;
    while (node < rm->npeers && !is_under_way(rm->peers[node], tag))
        node++;
    if (node == rm->npeers)
        return;
    struct peer *peer = rm->peers[node];
    if (flux_response_decode_raw(msg, NULL, &data, &len) < 0) {
        int rc = errno;
        const char *why = NULL;
        if (flux_response_decode_error(msg, &why) < 0 || why == NULL)
            why = strerror(rc);
        failed(rm, node, tag, rc, explain(rc, why));
        return;
    }
    arrived(peer, tag);
    await(rm, peer);
    peer->reached = true;
    peer->failing_since = peer->not_before = 0;
    peer_push(rm, node);
}

static void gone(struct rm *rm, uint32_t node, uint8_t loss)
{
    struct peer *peer = rm->peers[node];
    if (loss == PACKET_DIED) {
        give_up(peer, RM_PEER_DIE, "its process has ended");
    } else {
        rm_peer_move(&peer->state, RM_PEER_PART, peer->name);
        if (peer->sent != NULL)
            peer_lose(rm, node, LEFT);
        else
            peer_push(rm, node);
    }
}

void peer_gone(struct rm *rm, uint64_t job, uint32_t node, uint8_t loss)
{
    for (uint32_t at = 0; at < rm->npeers; at++)
        if (at != rm->boot->node && rm->peers[at]->job == job &&
            (node == PACKET_ALL_NODES || rm->peers[at]->node == node))
            gone(rm, at, loss);
}

void peers_offline(struct rm *rm, uint32_t broker)
{
    for (uint32_t node = 0; node < rm->npeers; node++)
        if (node != rm->boot->node && rm->peers[node]->placed && rm->peers[node]->broker == broker)
            peer_lose(rm, node, "its broker is lost");
}

/* @return when to come again */
static int64_t peer_tick(struct rm *rm, uint32_t node, int64_t now)
{
    struct peer *peer = rm->peers[node];
    /* A server that stood still itself, as in a job that is stopped, does not know how long others
     * had. */
    if (peer->sent != NULL && now >= peer->answer_by + STOOD_STILL_MS)
        await(rm, peer);
    else if (peer->sent != NULL && now >= peer->answer_by)
        peer_lose(rm, node, "it does not answer");
    if (peer->queue != NULL && rm->broker == BROKER_KNOWS)
        peer_push(rm, node);
    int64_t when = peer->sent != NULL ? peer->answer_by : INT64_MAX;
    if (peer->queue != NULL && rm->broker == BROKER_KNOWS && peer->placed &&
        peer->not_before > now && peer->not_before < when)
        when = peer->not_before;
    return when;
}

int64_t peers_tick(struct rm *rm, int64_t now)
{
    int64_t when = INT64_MAX;
    if (rm->broker == BROKER_GONE)
        peers_lose(rm, "the connection to our own broker was lost");
    for (uint32_t node = 0; node < rm->npeers; node++) {
        int64_t due = peer_tick(rm, node, now);
        if (due < when)
            when = due;
    }
    return when;
}

void peers_reached(const struct rm *rm, struct wire_out *out)
{
    size_t count = out->len;
    uint32_t n = 0;
    wire_put_u32(out, 0);
    for (uint32_t node = 0; node < rm->npeers; node++)
        if (rm->peers[node]->reached && !rm_peer_is_lost(rm->peers[node]->state)) {
            wire_put_u32(out, rm->peers[node]->broker);
            n++;
        }
    wire_set_u32(out, count, n);
}

bool peers_idle(const struct rm *rm)
{
    for (uint32_t node = 0; node < rm->npeers; node++)
        if (rm->peers[node]->queue != NULL || rm->peers[node]->sent != NULL)
            return false;
    return true;
}
