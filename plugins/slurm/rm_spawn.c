/* SPDX-License-Identifier: BSD-3-Clause */
/* muster-server's end of a spawn, and of a change of the job's allocation. A worker connects to
 * srun's agent, since munged may take its time; then the loop reads what the agent says, as long as
 * the spawned step lives. */
#include "plugins/slurm/rm_spawn.h"

#include "common/handoff/worker.h"
#include "common/launch/spawn_wire.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "plugins/slurm/agent_call.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/alloc_wire.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CALL_MS = 10000, /* to reach the agent */
    CALLS_MAX = 256, /* at a time; the agent looks after fewer steps */
    SPARE_S = 15,    /* beyond the time that the agent has */
    ALLOC_S = 60,    /* the same of an allocation: what is under way may have to be undone */
};

enum call_state {
    CALL_REACHES, /* the worker speaks to the agent, or is to */
    CALL_WAITS,   /* the agent has it; the loop reads */
    CALL_RUNS,    /* the step runs */
};

/* A conversation with the agent. */
struct call {
    struct work work;
    struct slurm_spawns *spawns;
    struct call *next;
    enum call_state state;
    struct wire_out frame;
    int fd; /* -1: the agent was not reached, why is in err */
    struct agent_line line;
    struct err err;
    struct event *event;
    struct evbuffer *in;
    uint32_t timeout;  /* s, of the agent */
    rm_spawn_fn *news; /* NULL, and the next one, too: it is news of our own step, and nothing
                          comes of it */
    rm_alloc_fn *allocated;
    void *arg;
};

struct slurm_spawns {
    const char *agent;
    const struct boot *boot;
    struct event_base *base;
    struct handoff *handoff;
    struct worker *worker;
    struct call *calls;
    unsigned ncalls;
};

static void call_free(struct call *call)
{
    struct call **at = &call->spawns->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    call->spawns->ncalls--;
    if (call->event != NULL)
        event_free(call->event);
    if (call->in != NULL)
        evbuffer_free(call->in);
    if (call->fd >= 0)
        close(call->fd);
    agent_line_close(&call->line);
    wire_out_free(&call->frame);
    free(call);
}

static void fail(struct call *call, enum rm_spawn_result result, const char *text)
{
    const struct rm_spawn_news news = {.result = result, .text = text};
    const struct rm_alloc_news none = {.result = result == RM_SPAWN_UNREACHED ? RM_ALLOC_UNREACHED
                                                                              : RM_ALLOC_FAILED,
                                       .text = text};
    if (call->news != NULL && call->state != CALL_RUNS)
        call->news(call->arg, &news);
    if (call->allocated != NULL)
        call->allocated(call->arg, &none);
    call_free(call);
}

/* ---- the agent's words ---- */

static void take_allocated(struct call *call, struct agent_frame *frame)
{
    char text[ALLOC_TEXT_MAX], *nodes = NULL;
    struct rm_alloc_news news = {0};
    if (alloc_get_news(&frame->body, &news, text, &nodes)) {
        call->allocated(call->arg, &news);
        call_free(call);
    } else {
        fail(call, RM_SPAWN_FAILED, "what srun says of the allocation makes no sense");
    }
    free(nodes);
}

/* @return whether more may come */
static bool take_news(struct call *call, struct agent_frame *frame)
{
    char text[SPAWN_TEXT_MAX];
    struct rm_spawn_news news = {0};
    if (frame->type == AGENT_ALLOCATED && call->allocated != NULL) {
        take_allocated(call, frame);
        return false;
    }
    if (call->news == NULL || (frame->type != AGENT_STARTED && frame->type != AGENT_ENDED))
        return true;
    if (!spawn_get_news(&frame->body, &news, text)) {
        fail(call, RM_SPAWN_FAILED, "what srun says of the spawned step makes no sense");
        return false;
    }
    bool ended = news.result == RM_SPAWN_ENDED, runs = news.result == RM_SPAWN_RUNS;
    if (ended != (call->state == CALL_RUNS)) {
        if (ended) /* a failure was told; this is its step's end */
            call_free(call);
        return !ended;
    }
    call->news(call->arg, &news);
    if (runs) {
        call->state = CALL_RUNS;
        event_del(call->event);
        event_add(call->event, NULL); /* it may run for as long as it wants */
        return true;
    }
    call_free(call);
    return false;
}

static void on_agent(evutil_socket_t fd, short what, void *arg)
{
    struct call *call = arg;
    if (what & EV_TIMEOUT) {
        fail(call, RM_SPAWN_UNREACHED, "srun does not answer");
        return;
    }
    int n = evbuffer_read(call->in, fd, -1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    for (;;) {
        struct agent_frame frame;
        size_t len = evbuffer_get_length(call->in);
        unsigned char *data = evbuffer_pullup(call->in, -1);
        int found = len == 0 ? 0 : agent_line_read(&call->line, data, len, &frame);
        if (found < 0) {
            fail(call, RM_SPAWN_FAILED, "what srun says of the spawned step makes no sense");
            return;
        }
        if (found == 0)
            break;
        size_t whole = frame.len;
        if (!take_news(call, &frame))
            return;
        evbuffer_drain(call->in, whole);
    }
    if (n <= 0)
        fail(call, RM_SPAWN_UNREACHED, "srun has ended, or the connection to it was lost");
}

/* @thread the loop's */
static void reached(struct handoff_item *item)
{
    struct call *call = (struct call *)item;
    call->state = CALL_WAITS;
    if (call->fd < 0) {
        char text[SPAWN_TEXT_MAX];
        snprintf(text, sizeof text, "srun is not reached: %s", call->err.text);
        if (call->news == NULL && call->allocated == NULL)
            log_warning("the program that has spawned this step is not told how it started: %s",
                        text);
        fail(call, RM_SPAWN_UNREACHED, text);
        return;
    }
    if (call->news == NULL && call->allocated == NULL) {
        call_free(call);
        return;
    }
    call->in = evbuffer_new();
    call->event = event_new(call->spawns->base, call->fd, EV_READ | EV_PERSIST, on_agent, call);
    const struct timeval wait = {.tv_sec = (time_t)call->timeout + SPARE_S};
    event_add(call->event, &wait);
}

/* @thread the worker's */
static void reach(struct work *work)
{
    struct call *call = (struct call *)work;
    int ms = deadline_left(work->since + CALL_MS);
    call->fd = agent_call_open(call->spawns->agent, &call->frame, ms, &call->line, &call->err);
}

/* spawns_close() frees it. */
static void keep(struct work *work)
{
    (void)work;
}

static const struct work_ops reaches = {reach, reached, keep};

/* @param begin of agent_frame_begin() */
static void start_call(struct call *call, size_t begin)
{
    agent_frame_end(&call->frame, begin);
    if (!worker_do(call->spawns->worker, &call->work))
        fail(call, RM_SPAWN_FAILED, "no thread can be started");
}

static struct call *call_new(struct slurm_spawns *s, rm_spawn_fn *news, void *arg)
{
    if (s->ncalls == CALLS_MAX)
        return NULL;
    struct call *call = calloc(1, sizeof *call);
    s->ncalls++;
    *call = (struct call){.spawns = s, .next = s->calls, .fd = -1, .news = news, .arg = arg};
    s->calls = call;
    return call;
}

/* ---- what the server asks ---- */

struct slurm_spawns *spawns_open(const char *agent, const struct boot *boot,
                                 struct event_base *base)
{
    struct slurm_spawns *s = calloc(1, sizeof *s);
    *s = (struct slurm_spawns){.agent = agent, .boot = boot, .base = base};
    s->handoff = handoff_new(base);
    s->worker = worker_new(&reaches, s->handoff);
    if (s->handoff != NULL && s->worker != NULL)
        return s;
    spawns_close(s, 0);
    return NULL;
}

void spawns_start(struct slurm_spawns *s, const struct rm_spawn *what, rm_spawn_fn *news, void *arg)
{
    struct call *call = call_new(s, news, arg);
    if (call == NULL) {
        const struct rm_spawn_news none = {.result = RM_SPAWN_NO_RESOURCES,
                                           .text = "too many spawned steps at a time"};
        news(arg, &none);
        return;
    }
    call->timeout = what->timeout;
    size_t begin = agent_frame_begin(&call->frame, AGENT_SPAWN);
    spawn_put(&call->frame, what, !what->daemons && s->boot->allocation.slots > s->boot->ntasks);
    start_call(call, begin);
}

/* @return why the job's allocation cannot change, or NULL */
static const char *unchanging(const struct slurm_spawns *s)
{
    const char *jobs = boot_setting(s->boot, "jobs");
    if (strcmp(s->boot->allocation.cluster, "musterrun") == 0)
        return "musterrun has one machine; its job does not change";
    if (jobs != NULL && strchr(jobs, ',') != NULL)
        return "Slurm changes no job of several components (heterogeneous)";
    return NULL;
}

void spawns_allocate(struct slurm_spawns *s, const struct rm_alloc *what, rm_alloc_fn *done,
                     void *arg)
{
    const char *why = unchanging(s);
    const struct rm_alloc_news no = {.result = RM_ALLOC_REFUSED, .text = why},
                               none = {.result = RM_ALLOC_NO_RESOURCES,
                                       .text = "too many spawned steps at a time"};
    struct call *call = why == NULL ? call_new(s, NULL, arg) : NULL;
    if (call == NULL) {
        done(arg, why != NULL ? &no : &none);
        return;
    }
    call->allocated = done;
    call->timeout = what->timeout + ALLOC_S;
    size_t begin = agent_frame_begin(&call->frame, AGENT_ALLOCATE);
    alloc_put(&call->frame, what);
    start_call(call, begin);
}

void spawns_let_go(struct slurm_spawns *s)
{
    struct wire_out frame = {0};
    agent_frame_end(&frame, agent_frame_begin(&frame, AGENT_LET_GO));
    for (struct call *call = s->calls; call != NULL; call = call->next) {
        struct wire_out out = {0};
        if (call->state == CALL_RUNS &&
            (!agent_line_put(&call->line, &frame, &out) ||
             send(call->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out.len))
            log_warning("srun does not hear that a spawned step may go on");
        wire_out_free(&out);
    }
    wire_out_free(&frame);
}

void spawns_started(struct slurm_spawns *s, const struct rm_spawn_news *news)
{
    struct call *call = call_new(s, NULL, NULL);
    if (call == NULL)
        return;
    size_t begin = agent_frame_begin(&call->frame, AGENT_STARTED);
    spawn_put_news(&call->frame, news);
    start_call(call, begin);
}

/* Whether the program that has spawned this step is still to be told that it has started: a step
 * may be over before the worker's thread runs. */
static bool owes_news(const struct slurm_spawns *s)
{
    const struct call *call = s->calls;
    while (call != NULL && (call->news != NULL || call->allocated != NULL))
        call = call->next;
    return call != NULL;
}

bool spawns_close(struct slurm_spawns *s, int64_t by)
{
    if (s == NULL)
        return true;
    if (!(owes_news(s) ? worker_finish(s->worker, by) : worker_close(s->worker, by)))
        return false;
    /* What threads have posted is not run: their calls end here. */
    handoff_free(s->handoff);
    while (s->calls != NULL)
        call_free(s->calls);
    free(s);
    return true;
}
