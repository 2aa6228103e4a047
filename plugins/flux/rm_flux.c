/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for Flux, loaded by muster-server: messages to other servers, of its own job and of
 * the user's others, through the brokers' modules; the job's end as an exception.
 *
 * It is a client of the local broker as the job's user. The module there vouches for the sender:
 * the brokers stamp every message with the uid of its sender. */
#include "plugins/flux/rm_flux.h"

#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/mark.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

MARK_VERSION;

enum {
    REGISTER_S = 5,   /* the module's answer at the start; it may have to ask whose the job is */
    MISSED_MS = 1000, /* a module that is loaded anew is back within less */
    CUT_OFF_STATUS = 137, /* of the job, as of one whose server has died */
};

/* The module had accepted us and is away: unloaded, or about to be there again. The user is told
 * when that lasts. When it lasts too long, this server can do nothing for its tasks any more, which
 * is as if it had died: the job is ended. */
static void miss_module(struct rm *rm, int64_t now)
{
    if (!rm->warned && now >= rm->silent_since + MISSED_MS) {
        rm->warned = true;
        log_warning("%s; until then operations with other nodes wait, and after %d s the job is "
                    "ended",
                    rm->refused.text, (int)(rm->peer_ms / 1000));
    }
    if (now < rm->silent_since + rm->peer_ms)
        return;
    peers_lose(rm, rm->refused.text);
    if (!raise_idle(rm) || rm->raise.state == RAISE_DONE)
        return;
    char why[768];
    snprintf(why, sizeof why, "%s is cut off from the other nodes: %s", boot_here(rm->boot)->name,
             rm->refused.text);
    log_error("%s; ending the job", why);
    raise_begin(rm, &(struct rm_ending){RM_CAUSE_HOST, CUT_OFF_STATUS, why, true});
}

/* The module was reloaded, or is gone for good, or was busy when we came.
 * @return when to come again */
static int64_t register_again(struct rm *rm, int64_t now)
{
    if (rm->broker != BROKER_APART && rm->broker != BROKER_BUSY)
        return INT64_MAX;
    if (now < rm->register_at)
        return rm->register_at;
    if (!rm->opening)
        miss_module(rm, now);
    broker_register(rm);
    return INT64_MAX;
}

/* What is due. @return when to come again */
static int64_t tick(struct rm *rm, int64_t now)
{
    const int64_t times[] = {register_again(rm, now), others_tick(rm, now), peers_tick(rm, now),
                             broker_tick(rm, now),    raise_tick(rm, now),  spawns_tick(rm, now)};
    int64_t when = INT64_MAX;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < when)
            when = times[i];
    return when;
}

static void set_timer(struct rm *rm)
{
    int64_t now = now_ms(), when = tick(rm, now);
    peers_tell(rm);
    if (when == INT64_MAX) {
        evtimer_del(rm->timer);
        return;
    }
    int64_t left = when > now ? when - now : 0;
    struct timeval tv = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    evtimer_add(rm->timer, &tv);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    broker_receive(arg);
    set_timer(arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    set_timer(arg);
}

/* What comes in this turn of the loop goes with it. */
static void flux_ready(struct rm *rm, uint32_t node)
{
    if (node >= rm->npeers)
        return;
    struct peer *peer = rm->peers[node];
    peer->more = true;
    if (!peer->placed)
        peer->other->wanted = true;
    rm_wake(rm);
}

static struct rm_peer flux_peer(struct rm *rm, uint32_t node)
{
    const struct peer *peer = node < rm->npeers ? rm->peers[node] : NULL;
    if (peer == NULL)
        return (struct rm_peer){.state = RM_PEER_LOST};
    return (struct rm_peer){
        .state = peer->state,
        .reached = peer->reached,
        .failing_since = peer->failing_since,
        .retries = peer->retries,
    };
}

/* The module is told at our end which servers we have reached, whichever way. That a server has
 * left the modules tell by themselves. */
static void flux_learn(struct rm *rm, uint32_t node, enum rm_fact fact)
{
    if (fact == RM_HEARD && node < rm->npeers)
        rm->peers[node]->reached = true;
}

/* Until @p done or @p deadline, without the loop. */
static void wait_for(struct rm *rm, bool (*done)(const struct rm *rm), int64_t deadline)
{
    struct pollfd poller = {.fd = rm->fd, .events = POLLIN};
    broker_receive(rm);
    while (!done(rm) && rm->broker != BROKER_GONE && deadline_left(deadline) > 0) {
        int64_t when = tick(rm, now_ms());
        if (when > deadline)
            when = deadline;
        poll(&poller, 1, deadline_left(when));
        broker_receive(rm);
    }
}

static bool answered(const struct rm *rm)
{
    return rm->broker == BROKER_KNOWS || rm->broker == BROKER_APART;
}

static bool quiet(const struct rm *rm)
{
    return raise_idle(rm) && peers_idle(rm);
}

static void flux_close_rm(struct rm *rm, unsigned ms)
{
    struct wire_out out = {0};
    rm->closing = true;
    if (rm->h != NULL) {
        wait_for(rm, quiet, now_ms() + ms);
        broker_tick(rm, INT64_MAX); /* what was taken counts as that */
        wire_put_u64(&out, rm->job);
        peers_reached(rm, &out);
        broker_ask(rm, "muster.leave", &out, 0);
    }
    if (rm->ready != NULL)
        event_free(rm->ready);
    if (rm->timer != NULL)
        event_free(rm->timer);
    if (rm->h != NULL)
        flux_close(rm->h);
    peers_free(rm);
    others_free(rm);
    spawns_free(rm);
    free(rm->raise.text);
    free(rm->parents);
    free(rm->brokers);
    free(rm);
}

static int read_settings(struct rm *rm, const char **uri, struct err *err)
{
    const char *job = boot_setting(rm->boot, "jobid"), *p = boot_setting(rm->boot, "brokers");
    char *end;
    *uri = boot_setting(rm->boot, "uri");
    if (job == NULL || p == NULL || *uri == NULL)
        return err_set(err, "the shell's boot message lacks jobid, brokers or uri");
    errno = 0;
    rm->job = strtoull(job, &end, 10);
    if (errno != 0 || end == job || *end != '\0')
        return err_set(err, "jobid \"%s\" is no number", job);
    for (uint32_t node = 0; node < rm->boot->nnodes; node++) {
        unsigned long rank = strtoul(p, &end, 10);
        char after = node + 1 < rm->boot->nnodes ? ',' : '\0';
        if (errno != 0 || end == p || *end != after || rank >= UINT32_MAX)
            return err_set(err, "brokers does not give a rank for each node");
        rm->brokers[node] = (uint32_t)rank;
        p = end + 1;
    }
    return 0;
}

static int connect_broker(struct rm *rm, const char *uri, struct event_base *base, struct err *err)
{
    if (broker_connect(rm, uri, err) != 0)
        return -1;
    rm->ready = event_new(base, rm->fd, EV_READ | EV_PERSIST, on_ready, rm);
    rm->timer = evtimer_new(base, on_timer, rm);
    if (event_add(rm->ready, NULL) != 0)
        return err_set(err, "the loop does not watch the broker's connection");
    rm->opening = true;
    broker_register(rm);
    wait_for(rm, answered, now_ms() + REGISTER_S * 1000);
    rm->opening = false;
    if (rm->broker == BROKER_KNOWS) {
        event_active(rm->ready, EV_READ, 0); /* what came behind the answer */
        return 0;
    }
    return err_set(err, "%s",
                   rm->refused.text[0] != '\0' ? rm->refused.text
                                               : "the broker's module does not answer");
}

static void name_own(struct rm *rm)
{
    rm->npeers = rm->boot->nnodes;
    for (uint32_t node = 0; node < rm->npeers; node++) {
        struct peer *peer = rm->peers[node] = &rm->own[node];
        *peer = (struct peer){.job = rm->job, .node = node, .placed = true};
        peer->broker = rm->brokers[node];
        peer->name = rm->boot->nodes[node].name;
        peer->end = &peer->sent;
    }
}

static void flux_job_now(struct rm *rm, rm_job_fn *done, void *arg)
{
    const char *expires = boot_setting(rm->boot, "expires");
    int64_t end = expires != NULL ? strtoll(expires, NULL, 10) : 0, now = time(NULL);
    if (end <= 0)
        done(arg, -1, NULL, "the job has no time limit");
    else
        done(arg, end > now ? end - now : 0, NULL, NULL);
}

static const uint32_t *flux_parents(struct rm *rm)
{
    return rm->parents;
}

static struct rm *flux_open_rm(const struct boot *boot, const struct conf *conf,
                               struct event_base *base, const struct rm_host *host, struct err *err)
{
    const char *uri;
    struct rm *rm = calloc(1, sizeof *rm);
    rm->boot = boot;
    rm->host = *host;
    rm->peer_ms = (int64_t)conf->timeouts.peer * 1000;
    rm->own = calloc(boot->nnodes, sizeof *rm->own);
    rm->peers = calloc(boot->nnodes, sizeof *rm->peers);
    rm->brokers = calloc(boot->nnodes, sizeof *rm->brokers);
    if (read_settings(rm, &uri, err) == 0) {
        name_own(rm);
        if (connect_broker(rm, uri, base, err) == 0)
            return rm;
    }
    flux_close_rm(rm, 0);
    return NULL;
}

__attribute__((visibility("default"))) const struct rm_ops muster_rm = {
    .name = "flux",
    .native = "Flux's brokers",
    .open = flux_open_rm,
    .ready = flux_ready,
    .peer = flux_peer,
    .learn = flux_learn,
    .abort = raise_begin,
    .is_ending = raise_look,
    .close = flux_close_rm,
    .rendezvous = others_rendezvous,
    .resolve = others_resolve,
    .attach = others_attach,
    .job_now = flux_job_now,
    .parents = flux_parents,
    .spawn = spawns_start,
    .started = spawns_started,
};
