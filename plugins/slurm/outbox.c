/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes to other servers, of the own step and of others, by slurm_forward_data.
 *
 * That call blocks for a millisecond or more, and for seconds where a node is down. So threads make
 * it: one at first, and one more, up to RM_SENDERS_MAX, when all of them are in the call and
 * another node waits. Few messages go this way once there are direct connections.
 *
 * What is queued for one node goes as one message, one at a time, so that order is kept. A message
 * that fails is sent again until the node counts as lost; it may have arrived nevertheless (link.h
 * copes). */
#include "plugins/slurm/rm_slurm.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_MAX = 64 << 20, /* bytes that are sent at once, unless one frame is longer */
    RETRY_FIRST_MS = 10,
    RETRY_MAX_MS = 500,
    RETRY_CLOSING_MS = 50, /* at most, when there is little time left */
};

/* @return the peer, made if it was not, or NULL when out of memory. @thread the loop's, locked */
static struct peer *peer_at(struct rm *rm, uint32_t node)
{
    struct peer *peer = rm->peers[node];
    if (peer != NULL || (peer = calloc(1, sizeof *peer)) == NULL)
        return peer;
    peer->node = node;
    peer->tail = &peer->queue;
    peer->name = rm->boot->nodes[node].name;
    peer->address = rm->address;
    return rm->peers[node] = peer;
}

/* When its queue or what is being sent has changed. @thread any, locked */
static void note_busy(struct rm *rm, struct peer *peer)
{
    bool is = peer->queue != NULL || peer->sent != NULL;
    if (is && !peer->is_busy)
        TAILQ_INSERT_TAIL(&rm->busy, peer, busy);
    else if (!is && peer->is_busy)
        TAILQ_REMOVE(&rm->busy, peer, busy);
    peer->is_busy = is;
}

/* @thread the loop's */
static void run_loss(struct handoff_item *item)
{
    struct loss *loss = (struct loss *)item;
    const struct peer *peer = loss->peer;
    const char *why = slurm_abi_strerror(loss->rc);
    if (loss->rm->closing)
        return;
    pthread_mutex_lock(&loss->rm->lock);
    bool reached = peer->reached, left = peer->state == RM_PEER_LEFT && reached;
    pthread_mutex_unlock(&loss->rm->lock);
    if (left)
        why = "it has left, for its tasks have ended";
    else if (loss->rc == ECONNREFUSED && !reached)
        why = "no server could be started there: look at slurmd's log there";
    else if (loss->rc == ENOENT && peer->foreign)
        why = "its step has ended";
    else if (loss->rc == ENOENT)
        why = "it never came: its tasks have ended before, or slurmd there did not start them, as "
              "when it runs since before muster was installed or lacks the plugin: look at "
              "slurmd's log there, and restart slurmd";
    loss->rm->host.lost(loss->rm->host.arg, peer->node, why);
}

static const char *name_of(const struct peer *peer)
{
    return peer->name != NULL ? peer->name : "a server of another step";
}

static void free_queue(struct outgoing *queue)
{
    while (queue != NULL) {
        struct outgoing *next = queue->next;
        free(queue->data);
        free(queue);
        queue = next;
    }
}

static void drop_queue(struct rm *rm, struct peer *peer)
{
    free_queue(peer->queue);
    peer->queue = NULL;
    peer->tail = &peer->queue;
    note_busy(rm, peer);
}

/* @thread any, locked */
static void lose(struct rm *rm, struct peer *peer, int rc)
{
    if (rc == ENOENT) /* it has no socket any more: its tasks have ended */
        rm_peer_move(&peer->state, RM_PEER_PART, name_of(peer));
    if (!rm_peer_move(&peer->state, RM_PEER_LOSE, name_of(peer)))
        return;
    drop_queue(rm, peer);
    peer->loss = (struct loss){.rm = rm, .peer = peer, .rc = rc};
    handoff_post(rm->handoff, &peer->loss.item, run_loss);
}

/* Takes as much of the queue as makes one message. @thread a sender's, locked */
static struct outgoing *take(struct peer *peer, size_t *len)
{
    struct outgoing *list = peer->queue, *last = list;
    *len = list->len;
    while (last->next != NULL && *len + last->next->len <= MESSAGE_MAX) {
        last = last->next;
        *len += last->len;
    }
    peer->queue = last->next;
    if (peer->queue == NULL)
        peer->tail = &peer->queue;
    last->next = NULL;
    return list;
}

static void put_back(struct peer *peer, struct outgoing *list)
{
    struct outgoing *last = list;
    while (last->next != NULL)
        last = last->next;
    last->next = peer->queue;
    if (peer->queue == NULL)
        peer->tail = &last->next;
    peer->queue = list;
}

/* @thread a sender's; the peer's name and address stay once they are there */
static int transmit(const struct peer *peer, const struct outgoing *list, size_t len)
{
    char *name = peer->name, *data = list->data;
    if (name == NULL || peer->address == NULL)
        return EHOSTUNREACH; /* of another step, which has not told of its nodes */
    if (list->next != NULL) {
        size_t at = 0;
        data = malloc(len);
        if (data == NULL)
            return ENOMEM;
        for (const struct outgoing *o = list; o != NULL; at += o->len, o = o->next)
            memcpy(data + at, o->data, o->len);
    }
    int rc = slurm_abi_forward_data(&name, peer->address, (uint32_t)len, data);
    if (data != list->data)
        free(data);
    return rc;
}

/* Whether nothing in the list has to arrive. */
static bool is_loose(const struct outgoing *list)
{
    while (list != NULL && list->care == CARE_MAY)
        list = list->next;
    return list == NULL;
}

/* Whether the error says that no server is at the peer's socket now. */
static bool is_absence(int rc)
{
    return rc == ECONNREFUSED || rc == ENOENT;
}

/* A socket listens from its birth on, until its server has died or could not be started
 * (listener.h): one that refuses is of neither use nor another run of the step, whose socket has
 * another name. A peer that was there before and has no socket any more has left. One that was
 * never there has timeouts.peer from our own start on to come, but not at our end: what has ended
 * there without a server has no socket any more. Of another step we have heard, as it is there.
 * @thread a sender's, locked */
static bool is_gone(const struct rm *rm, const struct peer *peer, int rc, int64_t now)
{
    if (rc == ECONNREFUSED || ((peer->reached || peer->foreign || rm->closing) && rc == ENOENT))
        return true;
    int64_t since = rc == ENOENT ? rm->opened : peer->failing_since;
    return now >= since + rm->peer_ms;
}

/* @thread a sender's, locked */
static void failed(struct rm *rm, struct peer *peer, struct outgoing *list, int rc)
{
    int64_t now = now_ms();
    peer->retries++;
    if (rm_peer_is_lost(peer->state)) {
        free_queue(list);
        return;
    }
    if (is_loose(list) && is_loose(peer->queue) && !(peer->reached && is_absence(rc))) {
        for (const struct outgoing *o = list; o != NULL; o = o->next)
            peer->dropped++;
        free_queue(list);
        return;
    }
    put_back(peer, list);
    if (peer->failing_since == 0) {
        peer->failing_since = now;
        peer->retry_ms = RETRY_FIRST_MS;
        log_debug("transport: %s is not reached yet: %s", name_of(peer), slurm_abi_strerror(rc));
    }
    if (is_gone(rm, peer, rc, now)) {
        lose(rm, peer, rc);
        return;
    }
    uint32_t most = rm->closing ? RETRY_CLOSING_MS : RETRY_MAX_MS;
    if (peer->retry_ms > most)
        peer->retry_ms = most;
    peer->not_before = now + peer->retry_ms;
    peer->retry_ms *= 2;
}

bool outbox_idle(const struct rm *rm)
{
    return TAILQ_EMPTY(&rm->busy);
}

/* @return the next peer that can be sent to, or NULL and when there will be one. @thread a
 * sender's, locked */
static struct peer *next_peer(struct rm *rm, int64_t *when)
{
    int64_t now = now_ms();
    struct peer *peer;
    *when = INT64_MAX;
    TAILQ_FOREACH (peer, &rm->busy, busy) {
        if (peer->queue == NULL || peer->sent != NULL)
            continue;
        if (peer->not_before <= now)
            return peer;
        if (peer->not_before < *when)
            *when = peer->not_before;
    }
    return NULL;
}

void rm_wait(struct rm *rm, pthread_cond_t *cond, int64_t when)
{
    struct timespec t = {.tv_sec = (time_t)(when / 1000), .tv_nsec = (long)(when % 1000) * 1000000};
    if (when == INT64_MAX)
        pthread_cond_wait(cond, &rm->lock);
    else
        pthread_cond_timedwait(cond, &rm->lock, &t);
}

static void *sender(void *arg);

/* @return 0 or an error number. @thread any, locked, or the only one */
static int start_sender(struct rm *rm)
{
    if (rm->nsenders == RM_SENDERS_MAX)
        return 0;
    int rc = thread_start(&rm->senders[rm->nsenders], sender, rm);
    rm->nsenders += rc == 0;
    return rc;
}

/* This thread may be away for long, and may have been the thread that waited for another node's
 * time: another thread takes over, if there is something to send or to wait for. @thread a
 * sender's, locked */
static void leave_to_others(struct rm *rm)
{
    int64_t when;
    if (rm->nsenders > rm->nsending)
        pthread_cond_signal(&rm->wake);
    else if (next_peer(rm, &when) != NULL || when != INT64_MAX)
        start_sender(rm); /* if it cannot be, a thread that comes back goes on */
}

/* @thread a sender's, locked; unlocks while it sends */
static void send_to(struct rm *rm, struct peer *peer)
{
    size_t len;
    struct outgoing *list = take(peer, &len);
    TAILQ_REMOVE(&rm->busy, peer, busy); /* the others have their turns first */
    TAILQ_INSERT_TAIL(&rm->busy, peer, busy);
    peer->sent = list;
    rm->nsending++;
    leave_to_others(rm);
    pthread_mutex_unlock(&rm->lock);
    int rc = transmit(peer, list, len);
    pthread_mutex_lock(&rm->lock);
    rm->nsending--;
    peer->sent = NULL;
    if (rc == 0) {
        peer->reached = true;
        peer->failing_since = peer->not_before = 0;
        free_queue(list);
    } else {
        failed(rm, peer, list, rc);
    }
    note_busy(rm, peer);
    if (outbox_idle(rm))
        pthread_cond_signal(&rm->ender.wake);
}

static void *sender(void *arg)
{
    struct rm *rm = arg;
    struct peer *peer;
    int64_t when;
    pthread_mutex_lock(&rm->lock);
    while (!rm->closing || (now_ms() < rm->close_by && !outbox_idle(rm))) {
        if ((peer = next_peer(rm, &when)) != NULL) {
            send_to(rm, peer);
        } else {
            rm_wait(rm, &rm->wake, rm->closing && when > rm->close_by ? rm->close_by : when);
        }
    }
    pthread_cond_broadcast(&rm->wake);
    pthread_mutex_unlock(&rm->lock);
    return NULL;
}

void outbox_send(struct rm *rm, uint32_t node, void *data, size_t len, enum frame_care care)
{
    struct outgoing *o = calloc(1, sizeof *o);
    if (node >= rm->npeers) { /* there was no memory to attach its step */
        free(data);
        free(o);
        return;
    }
    pthread_mutex_lock(&rm->lock);
    struct peer *peer = peer_at(rm, node);
    bool lost = peer != NULL && rm_peer_is_lost(peer->state);
    if (o == NULL || peer == NULL || (lost && care != CARE_MAY)) {
        free(data);
        free(o);
        if (peer != NULL)
            lose(rm, peer, ENOMEM); /* what comes after it would wait for it for ever */
    } else {
        o->data = data;
        o->len = len;
        o->care = care;
        *peer->tail = o;
        peer->tail = &o->next;
        note_busy(rm, peer);
        if (rm->nsenders > rm->nsending)
            pthread_cond_signal(&rm->wake);
        else if (peer->sent == NULL) /* else the thread that sends to that node goes on with it */
            start_sender(rm);
    }
    pthread_mutex_unlock(&rm->lock);
}

struct rm_peer outbox_peer(struct rm *rm, uint32_t node)
{
    if (node >= rm->npeers)
        return (struct rm_peer){.state = RM_PEER_LOST};
    const struct peer *peer = rm->peers[node];
    if (peer == NULL)
        return (struct rm_peer){0};
    pthread_mutex_lock(&rm->lock);
    struct rm_peer found = {
        .state = peer->state,
        .reached = peer->reached,
        .failing_since = peer->failing_since,
        .retries = peer->retries,
        .dropped = peer->dropped,
    };
    const struct outgoing *lists[] = {peer->sent, peer->queue};
    for (int i = 0; i < 2; i++)
        for (const struct outgoing *o = lists[i]; o != NULL; o = o->next) {
            found.queued++;
            found.must += o->care == CARE_MUST;
            found.should += o->care == CARE_SHOULD;
            found.queued_bytes += o->len;
        }
    pthread_mutex_unlock(&rm->lock);
    return found;
}

void outbox_learn(struct rm *rm, uint32_t node, enum rm_fact fact)
{
    /* This comes with each frame, so it takes the lock for the first one only. */
    if (fact == RM_HEARD && node < rm->npeers && rm->peers[node] != NULL && rm->peers[node]->heard)
        return;
    pthread_mutex_lock(&rm->lock);
    struct peer *peer = peer_at(rm, node);
    if (peer != NULL)
        peer->reached = peer->heard = true;
    if (peer != NULL && fact == RM_LEFT) {
        rm_peer_move(&peer->state, RM_PEER_PART, name_of(peer));
        if (rm_peer_move(&peer->state, RM_PEER_LOSE, name_of(peer)))
            drop_queue(rm, peer);
    }
    pthread_mutex_unlock(&rm->lock);
}

bool outbox_add(struct rm *rm, struct peer *peers, uint32_t base, uint32_t n)
{
    struct peer **all =
        base == rm->npeers ? realloc(rm->peers, ((size_t)base + n) * sizeof *all) : NULL;
    if (all == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        peers[i].node = base + i;
        peers[i].tail = &peers[i].queue;
        all[base + i] = &peers[i];
    }
    rm->peers = all;
    rm->npeers = base + n;
    outbox_start(rm);
    return true;
}

bool outbox_join(struct rm *rm, int64_t by)
{
    for (uint32_t i = 0;; i++) {
        pthread_mutex_lock(&rm->lock);
        bool last = i == rm->nsenders; /* those before it, which might start one more, have ended */
        pthread_mutex_unlock(&rm->lock);
        if (last || !thread_join_until(rm->senders[i], by))
            return last;
    }
}

int outbox_start(struct rm *rm)
{
    return rm->nsenders > 0 || rm->npeers < 2 ? 0 : start_sender(rm);
}

bool outbox_init(struct rm *rm)
{
    TAILQ_INIT(&rm->busy);
    rm->peers = calloc(rm->boot->nnodes, sizeof *rm->peers);
    rm->npeers = rm->peers != NULL ? rm->boot->nnodes : 0;
    return rm->peers != NULL;
}

void outbox_free(struct rm *rm)
{
    for (uint32_t i = 0; i < rm->npeers; i++) {
        struct peer *peer = rm->peers[i];
        if (peer == NULL)
            continue;
        if (peer->queue != NULL)
            log_debug("transport: what is left for %s is given up", name_of(peer));
        free_queue(peer->queue);
        if (!peer->foreign)
            free(peer);
    }
    free(rm->peers);
}
