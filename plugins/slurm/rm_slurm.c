/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for Slurm, loaded by muster-server: bytes to other servers of the step by
 * slurm_forward_data, bytes from them over the socket that the plugin made, the step's end.
 *
 * slurm_forward_data blocks for a millisecond or more, so a few threads call it. What is queued
 * for one node goes as one message, one at a time, so that order is kept. A message that fails is
 * sent again until the node counts as lost; it may have arrived nevertheless (link.h copes).
 *
 * slurmd on the receiving side connects to the socket as the sender's uid, so SO_PEERCRED vouches
 * for it; the socket's mode refuses everybody else (DESIGN: Trust). */
#include "plugins/slurm/rm_slurm.h"

#include "common/handoff/handoff.h"
#include "common/util/clock.h"
#include "common/util/join.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/step_end.h"
#include "shims/slurm/release.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 64 << 20, /* bytes that are sent at once, unless one frame is longer */
    RETRY_FIRST_MS = 10,
    RETRY_MAX_MS = 500,
    RETRY_CLOSING_MS = 50, /* at most, when there is little time left */
    KILL_AFTER_MS = 500,   /* for other servers to hear who tells the user why */
    SPARE_MS = 1000,       /* for threads to end, beyond the time that close() was given */
    OWED_MS = 5000,        /* what close() waits longer for slurmctld to take the order */
    AGENT_MS = 2000,       /* for srun's agent */
};

/* @thread the loop's */
static void run_loss(struct handoff_item *item)
{
    struct loss *loss = (struct loss *)item;
    struct rm *rm = loss->rm;
    if (!rm->closing)
        rm->host.lost(rm->host.arg, loss->node, loss->why);
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

/* @thread any, locked */
static void lose(struct rm *rm, uint32_t node, int rc)
{
    struct peer *peer = &rm->peers[node];
    struct loss *loss = &peer->loss; /* used once, and there without memory */
    if (peer->lost)
        return;
    peer->lost = true;
    peer->left = rc == ENOENT;
    free_queue(peer->queue);
    peer->queue = NULL;
    peer->tail = &peer->queue;
    loss->item.run = run_loss;
    loss->rm = rm;
    loss->node = node;
    snprintf(loss->why, sizeof loss->why, "%s",
             peer->left && peer->reached ? "it has left, for its tasks have ended"
             : rc == ENOENT
                 ? "it never came: its tasks have ended before, or slurmd there did not start "
                   "them, as when it runs since before muster was installed or lacks the "
                   "plugin: look at slurmd's log there, and restart slurmd"
                 : slurm_abi_strerror(rc));
    handoff_post(rm->handoff, &loss->item);
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

static int transmit(struct rm *rm, uint32_t node, const struct outgoing *list, size_t len)
{
    char *name = rm->boot->nodes[node].name, *data = list->data;
    if (list->next != NULL) {
        size_t at = 0;
        data = malloc(len);
        if (data == NULL)
            return ENOMEM;
        for (const struct outgoing *o = list; o != NULL; at += o->len, o = o->next)
            memcpy(data + at, o->data, o->len);
    }
    int rc = slurm_abi_forward_data(&name, rm->address, (uint32_t)len, data);
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

/* Whether the error says that nobody is at the peer's socket now. */
static bool is_absence(int rc)
{
    return rc == ECONNREFUSED || rc == ENOENT;
}

/* A peer that was there before and has no listening socket any more has left; one that refuses has
 * died (listener.h). One that was never there has timeouts.peer from our own start on to come. What
 * another run of the step has left there has another name. @thread a sender's, locked */
static bool is_gone(const struct rm *rm, const struct peer *peer, int rc, int64_t now)
{
    if (peer->reached && is_absence(rc))
        return true;
    int64_t since = rc == ENOENT ? rm->opened : peer->failing_since;
    return now >= since + rm->peer_ms;
}

/* @thread a sender's, locked */
static void failed(struct rm *rm, uint32_t node, struct outgoing *list, int rc)
{
    struct peer *peer = &rm->peers[node];
    int64_t now = now_ms();
    peer->retries++;
    if (peer->lost) {
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
        log_debug("transport: %s is not reached yet: %s", rm->boot->nodes[node].name,
                  slurm_abi_strerror(rc));
    }
    if (is_gone(rm, peer, rc, now)) {
        lose(rm, node, rc);
        return;
    }
    uint32_t most = rm->closing ? RETRY_CLOSING_MS : RETRY_MAX_MS;
    if (peer->retry_ms > most)
        peer->retry_ms = most;
    peer->not_before = now + peer->retry_ms;
    peer->retry_ms *= 2;
}

static bool idle(const struct rm *rm)
{
    for (uint32_t i = 0; i < rm->boot->nnodes; i++)
        if (rm->peers[i].queue != NULL || rm->peers[i].sent != NULL)
            return false;
    return true;
}

/* @thread a sender's, locked; unlocks while it sends */
static void send_to(struct rm *rm, uint32_t node)
{
    struct peer *peer = &rm->peers[node];
    size_t len;
    struct outgoing *list = take(peer, &len);
    peer->sent = list;
    pthread_mutex_unlock(&rm->lock);
    int rc = transmit(rm, node, list, len);
    pthread_mutex_lock(&rm->lock);
    peer->sent = NULL;
    if (rc == 0) {
        peer->reached = true;
        peer->failing_since = peer->not_before = 0;
        free_queue(list);
    } else {
        failed(rm, node, list, rc);
    }
    if (rm->kill && idle(rm))
        pthread_cond_signal(&rm->doom);
}

/* The next node that can be sent to, or when there will be one. @thread a sender's, locked */
static bool next_node(struct rm *rm, uint32_t *node, int64_t *when)
{
    int64_t now = now_ms();
    *when = INT64_MAX;
    for (uint32_t i = 0; i < rm->boot->nnodes; i++) {
        uint32_t n = (rm->turn + i) % rm->boot->nnodes;
        const struct peer *peer = &rm->peers[n];
        if (peer->queue == NULL || peer->sent != NULL)
            continue;
        if (peer->not_before <= now) {
            *node = n;
            rm->turn = n + 1;
            return true;
        }
        if (peer->not_before < *when)
            *when = peer->not_before;
    }
    return false;
}

static void wait_until(struct rm *rm, pthread_cond_t *cond, int64_t when)
{
    struct timespec t = {.tv_sec = (time_t)(when / 1000), .tv_nsec = (long)(when % 1000) * 1000000};
    if (when == INT64_MAX)
        pthread_cond_wait(cond, &rm->lock);
    else
        pthread_cond_timedwait(cond, &rm->lock, &t);
}

/* @thread the ender's, not locked */
static void tell_agent(const struct rm *rm, const struct rm_ending *ending)
{
    struct err err = {0};
    if (ending->status != 0 && agent_call_status(rm->agent, ending, AGENT_MS, &err) != 0)
        log_warning("srun cannot be told that the step ends with status %u, and ends with Slurm's "
                    "own: %s",
                    ending->status, err.text);
}

/* The terminal is not to be reached from a node where Slurm has killed tasks, but srun is. @thread
 * the ender's, not locked */
static void stuck(void *arg, const char *why)
{
    const struct rm *rm = arg;
    struct err err = {0};
    char text[256];
    snprintf(text, sizeof text,
             "step %s cannot be ended yet: %s; muster tries on, or end it with: scancel %s",
             rm->boot->label, why, rm->boot->label);
    if (agent_call_say(rm->agent, text, AGENT_MS, &err) == 0) {
        log_warning("%s", text);
        return;
    }
    log_debug("srun cannot be told: %s", err.text);
    log_error("%s", text);
}

/* @thread the ender's, not locked */
static bool pause_ender(void *arg, enum step_end_answer answer, unsigned ms)
{
    struct rm *rm = arg;
    pthread_mutex_lock(&rm->lock);
    int64_t until = now_ms() + ms, soon = now_ms() + STEP_END_AGAIN_MS;
    rm->owed = answer == STEP_END_REFUSED;
    while (now_ms() < (rm->closing && soon < until ? soon : until) && (!rm->closing || rm->owed))
        wait_until(rm, &rm->doom, rm->closing && soon < until ? soon : until);
    bool enough = rm->closing && !rm->owed;
    pthread_mutex_unlock(&rm->lock);
    return enough;
}

/* @thread the ender's, locked; unlocks while it calls slurmctld */
static void kill_step(struct rm *rm)
{
    uint32_t jobs[STEP_END_JOBS_MAX];
    struct step_run list[STEP_END_JOBS_MAX];
    struct step_end end = {.jobs = jobs,
                           .runs = list,
                           .step = rm->step,
                           .fails = rm->ending.status != 0,
                           .pause = pause_ender,
                           .stuck = stuck,
                           .arg = rm};
    const char *at = rm->jobs, *runs = rm->runs;
    char *next;
    rm->kill = false;
    pthread_mutex_unlock(&rm->lock);
    for (unsigned long job = strtoul(at, &next, 10); next != at && end.njobs < STEP_END_JOBS_MAX;
         job = strtoul(at, &next, 10)) {
        jobs[end.njobs] = (uint32_t)job;
        list[end.njobs++] = step_run_next(&runs);
        at = next + (*next == ',');
    }
    step_end(&end);
    pthread_mutex_lock(&rm->lock);
    rm->owed = false;
}

static void *sender(void *arg)
{
    struct rm *rm = arg;
    uint32_t node = 0;
    int64_t when;
    pthread_mutex_lock(&rm->lock);
    while (!rm->closing || (now_ms() < rm->close_by && !idle(rm))) {
        if (next_node(rm, &node, &when)) {
            /* We may be the one that waits for another node's time, and be away for long. */
            pthread_cond_signal(&rm->wake);
            send_to(rm, node);
        } else {
            wait_until(rm, &rm->wake, rm->closing && when > rm->close_by ? rm->close_by : when);
        }
    }
    pthread_cond_broadcast(&rm->wake);
    pthread_mutex_unlock(&rm->lock);
    return NULL;
}

/* Of its own, as all senders may hang. First srun learns with what status the step ends, since it
 * ends with its tasks. The step's tasks die everywhere at once, which would hide the reason from a
 * server that has not got it yet. */
static void *ender(void *arg)
{
    struct rm *rm = arg;
    pthread_mutex_lock(&rm->lock);
    while (rm->kill || !rm->closing) {
        if (rm->kill && !rm->told) {
            struct rm_ending ending = rm->ending;
            rm->told = true;
            pthread_mutex_unlock(&rm->lock);
            tell_agent(rm, &ending);
            pthread_mutex_lock(&rm->lock);
        } else if (rm->kill && (idle(rm) || now_ms() >= rm->kill_at))
            kill_step(rm);
        else
            wait_until(rm, &rm->doom, rm->kill ? rm->kill_at : INT64_MAX);
    }
    pthread_mutex_unlock(&rm->lock);
    return NULL;
}

static void slurm_send(struct rm *rm, uint32_t node, void *data, size_t len, enum frame_care care)
{
    struct outgoing *o = calloc(1, sizeof *o);
    pthread_mutex_lock(&rm->lock);
    if (o == NULL || rm->peers[node].lost) {
        free(data);
        free(o);
        lose(rm, node, ENOMEM); /* what comes after it would wait for it for ever */
    } else {
        o->data = data;
        o->len = len;
        o->care = care;
        *rm->peers[node].tail = o;
        rm->peers[node].tail = &o->next;
        pthread_cond_signal(&rm->wake);
    }
    pthread_mutex_unlock(&rm->lock);
}

static struct rm_peer slurm_peer(struct rm *rm, uint32_t node)
{
    pthread_mutex_lock(&rm->lock);
    const struct peer *peer = &rm->peers[node];
    struct rm_peer found = {
        .reached = peer->reached,
        .lost = peer->lost,
        .left = peer->left,
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

static void slurm_learn(struct rm *rm, uint32_t node, enum rm_fact fact)
{
    struct peer *peer = &rm->peers[node];
    pthread_mutex_lock(&rm->lock);
    peer->reached = true;
    if (fact == RM_LEFT && !peer->lost) {
        peer->lost = peer->left = true;
        free_queue(peer->queue);
        peer->queue = NULL;
        peer->tail = &peer->queue;
    }
    pthread_mutex_unlock(&rm->lock);
}

static void slurm_abort(struct rm *rm, const struct rm_ending *ending)
{
    /* why: srun has shown it, as it is in the server's log */
    pthread_mutex_lock(&rm->lock);
    rm->ending = (struct rm_ending){.cause = ending->cause, .status = ending->status};
    rm->kill_at = now_ms() + KILL_AFTER_MS;
    rm->kill = rm->owed = true;
    pthread_cond_signal(&rm->doom);
    pthread_mutex_unlock(&rm->lock);
}

static int start_threads(struct rm *rm, struct err *err)
{
    sigset_t all, before;
    uint32_t want = rm->boot->nnodes; /* one for each peer, and one to end the step */
    int rc = 0;
    if (want > RM_THREADS_MAX)
        want = RM_THREADS_MAX;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (rm->nthreads < want && rc == 0) {
        rc = pthread_create(&rm->threads[rm->nthreads], NULL, rm->nthreads == 0 ? ender : sender,
                            rm);
        rm->nthreads += rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rm->nthreads > 1 || rm->nthreads == want
               ? 0
               : err_set(err, "no thread can be started: %s", strerror(rc));
}

/* @thread the loop's, when no other is left */
static void free_peers(struct rm *rm)
{
    for (uint32_t i = 0; rm->peers != NULL && i < rm->boot->nnodes; i++) {
        if (rm->peers[i].queue != NULL)
            log_debug("transport: what is left for %s is given up", rm->boot->nodes[i].name);
        free_queue(rm->peers[i].queue);
    }
    free(rm->peers);
}

/* A step that is to end must end: while slurmctld has not taken the order, this server stays for a
 * while. Then the other servers whose tasks live try. */
static void join_ender(struct rm *rm, int64_t by)
{
    if (rm->nthreads == 0)
        return;
    pthread_mutex_lock(&rm->lock);
    bool owed = rm->owed;
    pthread_mutex_unlock(&rm->lock);
    if (owed)
        by += OWED_MS;
    if (join_until(rm->threads[0], by))
        return;
    if (owed)
        log_warning("slurmctld has not taken the order to end step %u of job %s: the servers with "
                    "tasks that live try on",
                    rm->step, rm->jobs);
    _exit(0);
}

static void slurm_close(struct rm *rm, unsigned ms)
{
    pthread_mutex_lock(&rm->lock);
    rm->closing = true;
    rm->close_by = now_ms() + ms;
    for (uint32_t i = 0; rm->peers != NULL && i < rm->boot->nnodes; i++)
        rm->peers[i].not_before = 0;
    pthread_cond_broadcast(&rm->wake);
    pthread_cond_signal(&rm->doom);
    pthread_mutex_unlock(&rm->lock);
    int64_t by = now_ms() + ms + SPARE_MS;
    join_ender(rm, by);
    for (uint32_t i = 1; i < rm->nthreads; i++)
        if (!join_until(rm->threads[i], by))
            _exit(0); /* stuck in a call to a slurmd that hangs; nothing of ours is left to save */
    inbox_close(rm->inbox);
    if (rm->handoff != NULL)
        handoff_run(rm->handoff);
    handoff_free(rm->handoff);
    free_peers(rm);
    pthread_mutex_destroy(&rm->lock);
    pthread_cond_destroy(&rm->wake);
    pthread_cond_destroy(&rm->doom);
    free(rm);
}

static int read_settings(struct rm *rm, struct err *err)
{
    const char *jobs = boot_setting(rm->boot, "jobs"), *step = boot_setting(rm->boot, "step");
    const char *runs = boot_setting(rm->boot, "runs"), *address = boot_setting(rm->boot, "address");
    if (jobs == NULL || step == NULL || runs == NULL || address == NULL)
        return err_set(err, "the plugin's boot message lacks jobs, step, runs or address");
    rm->jobs = jobs;
    rm->runs = runs;
    rm->step = (uint32_t)strtoul(step, NULL, 10);
    rm->address = (char *)address;
    rm->agent = boot_setting(rm->boot, "agent");
    return 0;
}

static struct rm *slurm_open(const struct boot *boot, const struct conf *conf,
                             struct event_base *base, const struct rm_host *host, struct err *err)
{
    pthread_condattr_t attr;
    struct rm *rm;
    if (slurm_release() == NULL) {
        err_set(err,
                "this muster does not know the Slurm of the library version %ld: install one that "
                "knows it",
                slurm_abi_api_version() >> 16);
        return NULL;
    }
    rm = calloc(1, sizeof *rm);
    if (rm == NULL)
        return NULL;
    rm->boot = boot;
    rm->host = *host;
    rm->opened = now_ms();
    rm->peer_ms = (int64_t)conf->timeouts.peer * 1000;
    pthread_mutex_init(&rm->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rm->wake, &attr);
    pthread_cond_init(&rm->doom, &attr);
    pthread_condattr_destroy(&attr);
    rm->peers = calloc(boot->nnodes, sizeof *rm->peers);
    for (uint32_t i = 0; rm->peers != NULL && i < boot->nnodes; i++)
        rm->peers[i].tail = &rm->peers[i].queue;
    rm->handoff = handoff_new(base);
    rm->inbox = inbox_open(BOOT_FD_LISTEN, base, &rm->host);
    slurm_abi_init(NULL);
    if (rm->peers == NULL || rm->handoff == NULL || rm->inbox == NULL)
        err_set(err, "out of memory");
    else if (read_settings(rm, err) == 0 && start_threads(rm, err) == 0)
        return rm;
    slurm_close(rm, 0);
    return NULL;
}

__attribute__((visibility("default"))) const struct rm_ops muster_rm = {
    .name = "slurm",
    .open = slurm_open,
    .send = slurm_send,
    .peer = slurm_peer,
    .learn = slurm_learn,
    .abort = slurm_abort,
    .close = slurm_close,
};
