/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes to other servers, of the own step and of others, by slurm_forward_data.
 *
 * That call blocks for a millisecond or more, and for seconds where a node is down. So threads make
 * it: one at first, and one more, up to RM_SENDERS_MAX, when all of them are in the call and
 * another node waits. Few messages go this way once there are direct connections.
 *
 * A node has one message under way at a time, so that order is kept: all that rm_host.next() has
 * for it by then. Nothing else of it is kept here. A message that fails may have arrived
 * nevertheless; rm_host.next() then gives again what it had, after a while, until the node counts
 * as lost. */
#include "plugins/slurm/rm_slurm.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <stdlib.h>

enum {
    MESSAGE_MAX = 16 << 20, /* bytes that are sent at once, unless one frame is longer */
    RETRY_FIRST_MS = 10,
    RETRY_MAX_MS = 500,
    RETRY_CLOSING_MS = 50, /* at most, when there is little time left */
};

/* A message under way. */
struct message {
    struct work work;
    struct rm *rm;
    struct peer *peer;
    char *name, *address; /* borrowed from the peer */
    uint64_t ticket;
    void *data; /* owned */
    size_t len;
    unsigned sender; /* which thread has it */
    int rc;
};

/* @return the peer, made if it was not, or NULL when out of memory */
static struct peer *peer_at(struct rm *rm, uint32_t node)
{
    struct peer *peer = rm->peers[node];
    if (peer != NULL || (peer = calloc(1, sizeof *peer)) == NULL)
        return peer;
    peer->node = node;
    peer->name = rm->boot->nodes[node].name;
    peer->address = rm->address;
    return rm->peers[node] = peer;
}

static const char *name_of(const struct peer *peer)
{
    return peer->name != NULL ? peer->name : "a server of another step";
}

/* Something is to be sent to a peer or is being sent, or no more. */
static void note_busy(struct rm *rm, struct peer *peer, bool is)
{
    if (is == peer->is_busy)
        return;
    peer->is_busy = is;
    if (is)
        TAILQ_INSERT_TAIL(&rm->busy, peer, busy);
    else
        TAILQ_REMOVE(&rm->busy, peer, busy);
    pthread_mutex_lock(&rm->lock);
    rm->idle = TAILQ_EMPTY(&rm->busy);
    if (rm->idle)
        pthread_cond_signal(&rm->ender.wake);
    pthread_mutex_unlock(&rm->lock);
}

static const char *explain(const struct peer *peer, int rc)
{
    if (peer->state == RM_PEER_LEFT && peer->reached)
        return "it has left, for its tasks have ended";
    if (rc == ECONNREFUSED && !peer->reached)
        return "no server could be started there: look at slurmd's log there";
    if (rc == ENOENT && peer->foreign)
        return "its step has ended";
    if (rc == ENOENT)
        return "it never came: its tasks have ended before, or slurmd there did not start them, as "
               "when it runs since before muster was installed or lacks the plugin: look at "
               "slurmd's log there, and restart slurmd";
    return slurm_abi_strerror(rc);
}

static void lose(struct rm *rm, struct peer *peer, int rc)
{
    if (rc == ENOENT) /* it has no socket any more: its tasks have ended */
        rm_peer_move(&peer->state, RM_PEER_PART, name_of(peer));
    if (rm_peer_move(&peer->state, RM_PEER_LOSE, name_of(peer)) && !rm->closing)
        rm->host.lost(rm->host.arg, peer->node, explain(peer, rc));
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
 * there without a server has no socket any more. Of another step we have heard, as it is there. */
static bool is_gone(const struct rm *rm, const struct peer *peer, int rc, int64_t now)
{
    if (rc == ECONNREFUSED || ((peer->reached || peer->foreign || rm->closing) && rc == ENOENT))
        return true;
    int64_t since = rc == ENOENT ? rm->opened : peer->failing_since;
    return now >= since + rm->peer_ms;
}

static void failed(struct rm *rm, struct peer *peer, int rc)
{
    int64_t now = now_ms();
    bool more = rm->host.failed(rm->host.arg, peer->node);
    peer->retries++;
    if (rm_peer_is_lost(peer->state) || (!more && !(peer->reached && is_absence(rc))))
        return;
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

static void push(struct rm *rm);

/* ---- threads ---- */

void rm_wait(struct rm *rm, pthread_cond_t *cond, int64_t when)
{
    struct timespec t = {.tv_sec = (time_t)(when / 1000), .tv_nsec = (long)(when % 1000) * 1000000};
    if (when == INT64_MAX)
        pthread_cond_wait(cond, &rm->lock);
    else
        pthread_cond_timedwait(cond, &rm->lock, &t);
}

/* @thread a sender's */
static void call(struct work *work)
{
    struct message *m = (struct message *)work;
    m->rc = slurm_abi_forward_data(&m->name, m->address, (uint32_t)m->len, m->data);
}

static void drop(struct work *work)
{
    struct message *m = (struct message *)work;
    free(m->data);
    free(m);
}

static void on_sent(struct handoff_item *item)
{
    struct message *m = (struct message *)item;
    struct rm *rm = m->rm;
    struct peer *peer = m->peer;
    rm->sending[m->sender] = peer->sends = false;
    if (m->rc == 0) {
        peer->reached = true;
        peer->failing_since = peer->not_before = 0;
        rm->host.arrived(rm->host.arg, peer->node, m->ticket);
    } else {
        failed(rm, peer, m->rc);
    }
    drop(&m->work);
    push(rm);
}

/* close() waits for what is posted without the loop. @thread a sender's */
static void post(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run)
{
    struct rm *rm = ((struct message *)item)->rm;
    pthread_mutex_lock(&rm->lock);
    handoff_post(handoff, item, run);
    rm->posted = true;
    pthread_cond_signal(&rm->sent);
    pthread_mutex_unlock(&rm->lock);
}

static const struct work_ops sending = {.call = call, .done = on_sent, .drop = drop};

/* @return a thread that is not in the call; RM_SENDERS_MAX: all are, or have ended */
static unsigned find_sender(const struct rm *rm)
{
    unsigned i = rm->ended ? RM_SENDERS_MAX : 0;
    while (i < RM_SENDERS_MAX && rm->sending[i])
        i++;
    return i;
}

/* @return 0 or an error number: it is not under way */
static int start(struct rm *rm, struct peer *peer, unsigned sender, uint64_t ticket,
                 struct wire_out *out)
{
    if (peer->name == NULL || peer->address == NULL)
        return EHOSTUNREACH; /* of another step, which has not told of its nodes */
    struct worker **worker = &rm->senders[sender];
    if (*worker == NULL)
        *worker = worker_make(&sending, post, rm->handoff);
    struct message *m = *worker != NULL && !out->failed ? calloc(1, sizeof *m) : NULL;
    if (m == NULL)
        return ENOMEM;
    *m = (struct message){.rm = rm,
                          .peer = peer,
                          .name = peer->name,
                          .address = peer->address,
                          .ticket = ticket,
                          .sender = sender};
    m->data = wire_out_take(out, &m->len);
    rm->sending[sender] = peer->sends = worker_do(*worker, &m->work);
    if (peer->sends)
        return 0;
    drop(&m->work);
    return EAGAIN;
}

/* Sends what there is to a peer. */
static void send_to(struct rm *rm, struct peer *peer, unsigned sender)
{
    struct wire_out out = {0};
    if (rm->closing && rm_peer_is_lost(peer->state)) {
        note_busy(rm, peer, false);
        return;
    }
    uint64_t ticket = rm->host.next(rm->host.arg, peer->node, MESSAGE_MAX, &out);
    bool none = ticket == 0 && !out.failed;
    int rc = none ? 0 : start(rm, peer, sender, ticket, &out);
    wire_out_free(&out);
    if (rc != 0)
        failed(rm, peer, rc);
    note_busy(rm, peer, !none);
    if (!none) { /* the others have their turns first */
        TAILQ_REMOVE(&rm->busy, peer, busy);
        TAILQ_INSERT_TAIL(&rm->busy, peer, busy);
    }
}

/* Sends to all that it is the turn of, and comes again when it is that of others. */
static void push(struct rm *rm)
{
    int64_t now = now_ms(), when = INT64_MAX;
    struct peer *peer, *next;
    unsigned sender = find_sender(rm);
    for (peer = TAILQ_FIRST(&rm->busy); peer != NULL && sender < RM_SENDERS_MAX; peer = next) {
        next = TAILQ_NEXT(peer, busy);
        if (peer->sends)
            continue;
        if (peer->not_before <= now) {
            send_to(rm, peer, sender);
            sender = find_sender(rm);
        }
        if (!peer->sends && peer->is_busy && peer->not_before < when)
            when = peer->not_before;
    }
    const struct timeval tv = {.tv_sec = (when - now) / 1000,
                               .tv_usec = (when - now) % 1000 * 1000};
    if (when == INT64_MAX)
        evtimer_del(rm->push);
    else if (when > now)
        evtimer_add(rm->push, &tv);
    else
        event_active(rm->push, EV_TIMEOUT, 0);
}

static void on_push(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    push(arg);
}

/* ---- the back end's functions ---- */

void outbox_ready(struct rm *rm, uint32_t node)
{
    struct peer *peer = node < rm->npeers ? peer_at(rm, node) : NULL;
    if (peer == NULL) {
        log_error("nothing can be sent to server %u: out of memory", node);
        return;
    }
    note_busy(rm, peer, true);
    event_active(rm->push, EV_TIMEOUT, 0); /* what comes in this turn of the loop goes with it */
}

struct rm_peer outbox_peer(struct rm *rm, uint32_t node)
{
    if (node >= rm->npeers)
        return (struct rm_peer){.state = RM_PEER_LOST};
    const struct peer *peer = rm->peers[node];
    if (peer == NULL)
        return (struct rm_peer){0};
    return (struct rm_peer){.state = peer->state,
                            .reached = peer->reached,
                            .failing_since = peer->failing_since,
                            .retries = peer->retries};
}

void outbox_learn(struct rm *rm, uint32_t node, enum rm_fact fact)
{
    struct peer *peer = peer_at(rm, node);
    if (peer == NULL)
        return;
    peer->reached = true;
    if (fact != RM_LEFT)
        return;
    rm_peer_move(&peer->state, RM_PEER_PART, name_of(peer));
    rm_peer_move(&peer->state, RM_PEER_LOSE, name_of(peer));
}

bool outbox_add(struct rm *rm, struct peer *peers, uint32_t base, uint32_t n)
{
    struct peer **all =
        base == rm->npeers ? realloc(rm->peers, ((size_t)base + n) * sizeof *all) : NULL;
    if (all == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        peers[i].node = base + i;
        all[base + i] = &peers[i];
    }
    rm->peers = all;
    rm->npeers = base + n;
    return true;
}

bool outbox_init(struct rm *rm, struct event_base *base)
{
    TAILQ_INIT(&rm->busy);
    rm->idle = true;
    rm->push = evtimer_new(base, on_push, rm);
    rm->peers = calloc(rm->boot->nnodes, sizeof *rm->peers);
    rm->npeers = rm->peers != NULL ? rm->boot->nnodes : 0;
    return rm->peers != NULL && rm->push != NULL;
}

void outbox_drain(struct rm *rm, int64_t by)
{
    struct peer *peer;
    int64_t now;
    TAILQ_FOREACH (peer, &rm->busy, busy)
        peer->not_before = 0;
    while (!rm->ended && !TAILQ_EMPTY(&rm->busy) && (now = now_ms()) < by) {
        push(rm);
        pthread_mutex_lock(&rm->lock);
        if (!rm->posted && !rm->idle)
            rm_wait(rm, &rm->sent, by < now + RETRY_FIRST_MS ? by : now + RETRY_FIRST_MS);
        rm->posted = false;
        pthread_mutex_unlock(&rm->lock);
        handoff_run(rm->handoff);
    }
}

bool outbox_close(struct rm *rm, int64_t by)
{
    bool all = true;
    for (unsigned i = 0; i < RM_SENDERS_MAX; i++)
        all = worker_close(rm->senders[i], by) && all;
    rm->ended = true; /* what they have posted may be run still */
    return all;
}

void outbox_free(struct rm *rm)
{
    for (uint32_t i = 0; i < rm->npeers; i++)
        if (rm->peers[i] != NULL && !rm->peers[i]->foreign)
            free(rm->peers[i]);
    free(rm->peers);
    if (rm->push != NULL)
        event_free(rm->push);
}
