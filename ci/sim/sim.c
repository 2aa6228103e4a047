/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers, frames under way, and the clock. */
#include "ci/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { START = 1000, HOP_MS = 1 };

void *sim_must(void *p)
{
    if (p == NULL)
        abort();
    return p;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- timers ---- */

static void push_timer(struct sim *sim, struct sim_timer timer)
{
    if (sim->ntimers == sim->timers_cap) {
        sim->timers_cap = sim->timers_cap > 0 ? 2 * sim->timers_cap : 1024;
        sim->timers = sim_must(realloc(sim->timers, sim->timers_cap * sizeof *sim->timers));
    }
    size_t i = sim->ntimers++;
    for (; i > 0 && timer.at < sim->timers[(i - 1) / 2].at; i = (i - 1) / 2)
        sim->timers[i] = sim->timers[(i - 1) / 2];
    sim->timers[i] = timer;
}

static struct sim_timer pop_timer(struct sim *sim)
{
    struct sim_timer *heap = sim->timers, top = heap[0], last = heap[--sim->ntimers];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < sim->ntimers; i = child) {
        if (child + 1 < sim->ntimers && heap[child + 1].at < heap[child].at)
            child++;
        if (last.at <= heap[child].at)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* ---- an engine's turn ---- */

static double enter(struct sim_node *node)
{
    meter_enter(&node->meter);
    return cpu_ns();
}

/* A server looks after each turn when the next one is due, so that is part of the turn's cost. */
static double leave(struct sim_node *node, double begin)
{
    int64_t ms = timers_wait(&node->timers);
    double spent = cpu_ns() - begin;
    uint64_t due = ms < 0 ? UINT64_MAX : node->sim->now + (uint64_t)ms;
    meter_enter(NULL);
    if (due < node->due) {
        node->due = due;
        push_timer(node->sim, (struct sim_timer){due, (uint32_t)(node - node->sim->nodes)});
    }
    return spent;
}

void sim_call(struct sim *sim, uint32_t node, struct sim_call *call,
              void (*make)(struct engine *engine, struct engine_call *call))
{
    sim->hops = 0;
    sim->costs.calls++;
    sim->awaits++;
    sim->nodes[node].awaits++;
    call->node = &sim->nodes[node];
    call->answered = false;
    double begin = enter(&sim->nodes[node]);
    make(sim->nodes[node].engine, &call->call);
    sim->costs.call_ns += leave(&sim->nodes[node], begin);
}

void sim_answered(struct sim_call *call, int32_t status)
{
    struct sim *sim = call->node->sim;
    if (call->answered)
        abort(); /* an engine has answered twice */
    call->answered = true;
    call->status = status;
    call->node->awaits--;
    sim->awaits -= !call->node->dead;
    sim->costs.answered++;
    sim->costs.failed += status != 0;
}

void sim_tell_loss(struct sim *sim, uint32_t lost)
{
    sim->hops = 0;
    for (uint32_t i = 0; i < sim->nnodes; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->dead)
            continue;
        double begin = enter(node);
        engine_lost(node->engine, lost);
        leave(node, begin);
    }
}

void sim_kill(struct sim *sim, uint32_t node)
{
    if (!sim->nodes[node].dead)
        sim->awaits -= sim->nodes[node].awaits;
    sim->nodes[node].dead = true;
}

/* ---- frames ---- */

static void count(struct sim_node *from, struct sim_node *to, uint8_t type, size_t len)
{
    struct sim_costs *costs = &from->sim->costs;
    len += SIM_HEADER;
    costs->frames++;
    costs->bytes += len;
    from->bytes_out += len;
    to->bytes_in += len;
    to->frames_in++;
    if (type != FRAME_RELEASE)
        return;
    from->releases_out++;
    if (to->above == SIM_NONE)
        to->above = (uint32_t)(from - from->sim->nodes);
    if (len > costs->release)
        costs->release = len;
}

static void queue(struct sim *sim, struct sim_frame frame)
{
    if (sim->nframes == sim->cap) {
        size_t cap = sim->cap > 0 ? 2 * sim->cap : 1024;
        struct sim_frame *frames = sim_must(malloc(cap * sizeof *frames));
        for (size_t i = 0; i < sim->nframes; i++)
            frames[i] = sim->frames[(sim->first + i) % sim->cap];
        free(sim->frames);
        sim->frames = frames;
        sim->cap = cap;
        sim->first = 0;
    }
    sim->frames[(sim->first + sim->nframes++) % sim->cap] = frame;
}

/* @return the frame's bytes with the body; head is freed */
static void *with_body(void *head, size_t len, const struct shared_bytes *body)
{
    unsigned char *data = sim_must(malloc(len + body->len));
    memcpy(data, head, len);
    memcpy(data + len, body->data, body->len);
    free(head);
    return data;
}

void sim_send(struct sim_node *from, uint32_t to, struct wire_out *out, struct shared_bytes *body)
{
    struct sim *sim = from->sim;
    struct sim_frame frame = {.at = sim->now + HOP_MS,
                              .from = (uint32_t)(from - sim->nodes),
                              .to = to,
                              .hops = sim->hops + 1};
    size_t head;
    frame.data = wire_out_take(out, &head);
    frame.len = head + (body != NULL ? body->len : 0);
    meter_hand_over(frame.data);
    meter_enter(NULL);
    uint8_t type = *(const uint8_t *)frame.data;
    bool large = type == FRAME_RELEASE && frame.len > SIM_WHOLE;
    if (type == FRAME_RELEASE && to == sim->victim)
        sim_kill(sim, to);
    count(from, &sim->nodes[to], type, frame.len);
    if (sim->nodes[to].dead || from->dead || (large && from->large++ > 0)) {
        sim->sampled |= !sim->nodes[to].dead;
        free(frame.data);
    } else {
        if (body != NULL)
            frame.data = with_body(frame.data, head, body);
        queue(sim, frame);
    }
    meter_enter(&from->meter);
}

static void deliver(struct engine *engine, const struct sim_frame *frame)
{
    const unsigned char *bytes = (const unsigned char *)frame->data;
    engine_take(engine, frame->from, (enum frame_type)bytes[0], bytes + 1, frame->len - 1);
}

static void pass_frame(struct sim *sim)
{
    struct sim_frame frame = sim->frames[sim->first];
    struct sim_node *to = &sim->nodes[frame.to];
    sim->first = (sim->first + 1) % sim->cap;
    sim->nframes--;
    sim->now = frame.at;
    sim->hops = frame.hops;
    if (!to->dead) {
        if (frame.hops > sim->costs.hops)
            sim->costs.hops = frame.hops;
        sim->costs.passed++;
        double begin = enter(to);
        deliver(to->engine, &frame);
        sim->costs.frame_ns += leave(to, begin);
    }
    free(frame.data);
}

/* An entry that its server has brought forward since is passed over. */
static void pass_timer(struct sim *sim)
{
    struct sim_timer timer = pop_timer(sim);
    struct sim_node *node = &sim->nodes[timer.node];
    if (timer.at != node->due)
        return;
    sim->now = timer.at > sim->now ? timer.at : sim->now;
    sim->hops = 0;
    node->due = UINT64_MAX;
    double begin = enter(node);
    if (!node->dead)
        timers_run(&node->timers);
    leave(node, begin);
}

/* Servers that no release was made for get one all the same. */
static void add_unsent(struct sim *sim)
{
    uint64_t reached = 1;
    for (uint32_t i = 0; i < sim->nnodes; i++)
        reached += sim->nodes[i].above != SIM_NONE;
    sim->costs.unsent = sim->nnodes - reached;
    sim->costs.frames += sim->costs.unsent;
    sim->costs.bytes += sim->costs.unsent * sim->costs.release;
}

void sim_run(struct sim *sim, uint64_t ms)
{
    uint64_t end = sim->now + ms;
    for (;;) {
        bool waits = sim->awaits > 0 && !sim->sampled && sim->ntimers > 0;
        bool timer = waits && (sim->nframes == 0 || sim->timers[0].at < sim->frames[sim->first].at);
        if (timer ? sim->timers[0].at > end : sim->nframes == 0)
            break;
        if (timer)
            pass_timer(sim);
        else
            pass_frame(sim);
    }
    if (sim->sampled)
        add_unsent(sim);
}

/* ---- all of them ---- */

void sim_begin(struct sim *sim)
{
    sim->costs = (struct sim_costs){0};
    sim->sampled = false;
    for (uint32_t i = 0; i < sim->nnodes; i++) {
        struct sim_node *node = &sim->nodes[i];
        node->base = node->meter.max = node->meter.now;
        node->frames_in = node->large = node->releases_out = 0;
        node->bytes_in = node->bytes_out = 0;
        node->above = SIM_NONE;
    }
}

struct sim *sim_new(uint32_t nnodes, uint32_t arity)
{
    struct sim *sim = sim_must(calloc(1, sizeof *sim));
    sim->nnodes = nnodes;
    sim->now = START;
    sim->victim = SIM_NONE;
    sim->nodes = sim_must(calloc(nnodes, sizeof *sim->nodes));
    for (uint32_t i = 0; i < nnodes; i++) {
        struct sim_node *node = &sim->nodes[i];
        node->sim = sim;
        node->due = UINT64_MAX;
        meter_enter(&node->meter);
        node->engine = sim_engine(node, i, arity);
        meter_enter(NULL);
    }
    sim_begin(sim);
    return sim;
}

void sim_free(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->nnodes; i++) /* an engine that closes tells others */
        sim->nodes[i].dead = true;
    for (uint32_t i = 0; i < sim->nnodes; i++) {
        meter_enter(&sim->nodes[i].meter);
        engine_close(sim->nodes[i].engine);
        engine_free(sim->nodes[i].engine);
        meter_enter(NULL);
    }
    for (; sim->nframes > 0; sim->nframes--) {
        free(sim->frames[sim->first].data);
        sim->first = (sim->first + 1) % sim->cap;
    }
    free(sim->frames);
    free(sim->timers);
    free(sim->nodes);
    free(sim);
}
