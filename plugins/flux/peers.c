/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes to other servers: a window of messages under way to each, then one with all that
 * rm_host.next() has by then. The brokers hold no more than that, whatever a server does. When a
 * message fails, rm_host.next() gives again what has not arrived, until the peer counts as lost. */
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

/* Forgets messages that are under way: those from @p at on, before @p rest. */
static void forget(struct peer *peer, struct message **at, struct message *rest)
{
    struct message *m;
    while ((m = *at) != rest) {
        *at = m->next;
        peer->messages--;
        peer->bytes -= m->len;
        free(m);
    }
    if (rest == NULL)
        peer->end = at;
}

void peers_free(struct rm *rm)
{
    for (uint32_t node = 0; node < rm->npeers; node++)
        forget(rm->peers[node], &rm->peers[node]->sent, NULL);
    free(rm->peers);
    free(rm->own);
}

/* peers_tell() says so to the server. What goes to a server that is given up already, and does not
 * arrive, is dropped (CARE_MAY). */
static void give_up(struct peer *peer, enum rm_peer_event event, const char *why)
{
    bool lost = rm_peer_is_lost(peer->state);
    if (!rm_peer_move(&peer->state, event, peer->name) && !lost)
        return;
    forget(peer, &peer->sent, NULL);
    peer->more = false;
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

/* Takes what makes one message, and writes it. @return NULL: there is nothing, or no memory */
static flux_msg_t *take(struct rm *rm, uint32_t node, struct message *m)
{
    struct peer *peer = rm->peers[node];
    struct wire_out out = {0};
    wire_put_u32(&out, PACKET_VERSION);
    wire_put_u64(&out, rm->job);
    wire_put_u32(&out, rm->boot->node);
    wire_put_u32(&out, rm->brokers[rm->boot->node]);
    wire_put_u64(&out, peer->job);
    wire_put_u32(&out, peer->node);
    size_t head = out.len;
    m->ticket = rm->host.next(rm->host.arg, node, MESSAGE_MAX, &out);
    m->len = out.len - head;
    bool none = m->ticket == 0 && !out.failed;
    flux_msg_t *msg = none ? NULL : broker_request("muster.send", peer->broker, &out);
    peer->more = !none;
    if (msg == NULL && !none)
        rm->host.failed(rm->host.arg, node);
    wire_out_free(&out);
    return msg;
}

/* An answer is awaited anew after each, as long as something is under way. */
static void await(struct rm *rm, struct peer *peer)
{
    peer->answer_by = now_ms() + rm->peer_ms + (int64_t)(peer->bytes / SLOWEST);
}

/* @return whether there was something to send */
static bool send_one(struct rm *rm, uint32_t node)
{
    struct peer *peer = rm->peers[node];
    struct message *m = calloc(1, sizeof *m);
    flux_msg_t *msg = m != NULL ? take(rm, node, m) : NULL;
    if (msg == NULL) {
        free(m);
        return false;
    }
    m->tag = broker_tag(rm);
    *peer->end = m;
    peer->end = &m->next;
    peer->bytes += m->len;
    if (peer->messages++ == 0)
        await(rm, peer);
    broker_send(rm, msg, m->tag);
    return true;
}

void peer_push(struct rm *rm, uint32_t node)
{
    struct peer *peer = rm->peers[node];
    while (peer->more && peer->messages < PACKET_WINDOW_MESSAGES &&
           peer->bytes < PACKET_WINDOW_BYTES && rm->broker == BROKER_KNOWS &&
           peer->not_before <= now_ms()) {
        if (peer->state == RM_PEER_AWAY) {
            peer_lose(rm, node, LEFT);
            return;
        }
        if (!peer->placed) /* others_tick() asks where it is */
            return;
        if (!send_one(rm, node))
            return;
    }
}

/* @param at the message that has failed, and all behind it with it */
static void failed(struct rm *rm, uint32_t node, struct message **at, int rc, const char *why)
{
    struct peer *peer = rm->peers[node];
    int64_t now = now_ms();
    forget(peer, at, NULL);
    peer->more = rm->host.failed(rm->host.arg, node);
    peer->retries++;
    if (rc == ESHUTDOWN) {
        rm_peer_move(&peer->state, RM_PEER_PART, peer->name);
        peer_lose(rm, node, LEFT);
        return;
    }
    bool never = rc == EPERM || rc == EPROTO || rc == EINVAL || rc == EMSGSIZE;
    if (rm_peer_is_lost(peer->state) || (!peer->more && !never))
        return;
    if (peer->failing_since == 0) {
        peer->failing_since = now;
        peer->retry_ms = RM_RETRY_FIRST_MS;
        log_debug("transport: %s (node %u) is not reached yet: %s", peer->name, peer->node, why);
    }
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

/* @return where that message is under way, or NULL */
static struct message **find(struct peer *peer, uint32_t tag)
{
    struct message **at = &peer->sent;
    while (*at != NULL && (*at)->tag != tag)
        at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

/* That message has arrived, and all before it. */
static void arrived(struct rm *rm, uint32_t node, struct message *m)
{
    struct peer *peer = rm->peers[node];
    uint64_t ticket = m->ticket;
    forget(peer, &peer->sent, m->next);
    rm->host.arrived(rm->host.arg, node, ticket);
    await(rm, peer);
    peer->reached = true;
    peer->failing_since = peer->not_before = 0;
    peer_push(rm, node);
}

void peer_answer(struct rm *rm, uint32_t tag, const flux_msg_t *msg)
{
    const void *data;
    size_t len;
    uint32_t node = 0;
    struct message **at = NULL;
    while (node < rm->npeers && (at = find(rm->peers[node], tag)) == NULL)
        node++;
    if (node == rm->npeers)
        return;
    if (flux_response_decode_raw(msg, NULL, &data, &len) == 0) {
        arrived(rm, node, *at);
        return;
    }
    int rc = errno;
    const char *why = NULL;
    if (flux_response_decode_error(msg, &why) < 0 || why == NULL)
        why = strerror(rc);
    failed(rm, node, at, rc, explain(rc, why));
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
    peer_push(rm, node);
    int64_t when = peer->sent != NULL ? peer->answer_by : INT64_MAX;
    if (peer->more && rm->broker == BROKER_KNOWS && peer->placed && peer->not_before > now &&
        peer->not_before < when)
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
        if (rm->peers[node]->more || rm->peers[node]->sent != NULL)
            return false;
    return true;
}
