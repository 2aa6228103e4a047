/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations: who calls what, and what has to come of it. */
#include "ci/sim/measures.h"

#include "ci/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARITY = 16,
    ROUNDS = 5,     /* of an operation that can be repeated: the one with the least CPU counts */
    LEADERS = 1024, /* of a bootstrap */
    MEETING = 16,   /* servers of each of many groups */
    MANY = 10000,
    LOSS_MS = 20,         /* until the others learn of a loss */
    PATIENCE_MS = 600000, /* no operation takes as long on a perfect network */
};

/* The calls of one operation, and what they share. */
struct calls {
    void *sig;
    size_t siglen;
    void *data;
    uint32_t n;
    struct sim_call *all;
};

static void answered(struct engine_call *call, const struct engine_result *result)
{
    sim_answered((struct sim_call *)call, result->status);
}

static struct calls calls_new(uint32_t n, uint32_t data)
{
    struct calls calls = {.n = n};
    calls.all = sim_must(calloc(n, sizeof *calls.all));
    calls.data = sim_must(calloc(1, data + 1));
    for (uint32_t i = 0; i < n; i++) {
        calls.all[i].call.done = answered;
        calls.all[i].call.data = calls.data;
        calls.all[i].call.len = data;
    }
    return calls;
}

static void sign(struct calls *calls, enum coll_kind kind, const char *id, uint32_t servers)
{
    struct procset set = {0};
    struct wire_out out = {0};
    if (procset_add(&set, SIM_NSPACE, 0, servers * SIM_RANKS - 1) != 0)
        abort();
    signature_write(&out, kind, id, &set);
    procset_free(&set);
    free(calls->sig);
    calls->sig = sim_must(wire_out_take(&out, &calls->siglen));
    for (uint32_t i = 0; i < calls->n; i++) {
        calls->all[i].call.sig = calls->sig;
        calls->all[i].call.siglen = calls->siglen;
        calls->all[i].call.flags = kind == COLL_CONSTRUCT ? ENGINE_WANT_CONTEXT_ID : 0;
    }
}

static void calls_free(struct calls *calls)
{
    free(calls->sig);
    free(calls->data);
    free(calls->all);
}

/* What is held is asked for before the engines go; what was the least CPU is kept. */
static void take(struct measure *m, const struct sim *sim)
{
    const struct sim_costs *costs = &sim->costs;
    double frame = costs->passed > 0 ? costs->frame_ns / 1000 / (double)costs->passed : 0;
    double call = costs->calls > 0 ? costs->call_ns / 1000 / (double)costs->calls : 0;
    double sum = 0;
    bool first = m->frames == 0;
    m->sampled = sim->sampled;
    m->frames = costs->frames;
    m->bytes = costs->bytes;
    m->release = costs->release;
    m->hops = costs->hops;
    m->frame_us = first || frame < m->frame_us ? frame : m->frame_us;
    m->call_us = first || call < m->call_us ? call : m->call_us;
    m->frames_in = 0;
    m->bytes_in = m->bytes_out = m->memory = m->kept = 0;
    for (uint32_t i = 0; i < sim->nnodes; i++) {
        const struct sim_node *node = &sim->nodes[i];
        size_t most = node->meter.max - node->base;
        size_t kept = node->meter.now > node->base ? node->meter.now - node->base : 0;
        m->frames_in = node->frames_in > m->frames_in ? node->frames_in : m->frames_in;
        m->bytes_in = node->bytes_in > m->bytes_in ? node->bytes_in : m->bytes_in;
        m->bytes_out = node->bytes_out > m->bytes_out ? node->bytes_out : m->bytes_out;
        m->memory = most > m->memory ? most : m->memory;
        m->kept = kept > m->kept && !m->sampled ? kept : m->kept;
        sum += (double)most;
    }
    m->memory_mean = (size_t)(sum / sim->nnodes);
}

static bool all_succeeded(const struct sim *sim)
{
    return (sim->sampled || sim->costs.answered == sim->costs.calls) && sim->costs.failed == 0;
}

static void call_all(struct sim *sim, struct calls *calls)
{
    for (uint32_t i = 0; i < sim->nnodes; i++)
        if (!sim->nodes[i].dead)
            sim_call(sim, i, &calls->all[i], engine_call);
}

/* All servers take part. @param rounds of the same operation; one, where it is sampled */
static void run_all(struct measure *m, struct sim *sim, struct calls *calls, uint32_t rounds)
{
    m->good = true;
    for (uint32_t i = 0; i < rounds && !sim->sampled; i++) {
        sim_begin(sim);
        call_all(sim, calls);
        sim_run(sim, PATIENCE_MS);
        m->good = m->good && all_succeeded(sim);
        take(m, sim);
    }
}

static void fence(struct measure *m)
{
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls calls = calls_new(m->servers, m->data);
    sign(&calls, COLL_FENCE, "", m->servers);
    run_all(m, sim, &calls, ROUNDS);
    sim_free(sim);
    calls_free(&calls);
}

static void construct(struct measure *m)
{
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls calls = calls_new(m->servers, m->data);
    sign(&calls, COLL_CONSTRUCT, "ocean", m->servers);
    run_all(m, sim, &calls, 1);
    sim_free(sim);
    calls_free(&calls);
}

static void destruct(struct measure *m)
{
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls calls = calls_new(m->servers, 0);
    struct measure before = *m;
    sign(&calls, COLL_CONSTRUCT, "ocean", m->servers);
    run_all(&before, sim, &calls, 1);
    sign(&calls, COLL_DESTRUCT, "ocean", m->servers);
    m->sampled = sim->sampled; /* most servers have not constructed it then */
    if (!m->sampled)
        run_all(m, sim, &calls, 1);
    m->good = before.good && (m->sampled || m->good);
    sim_free(sim);
    calls_free(&calls);
}

/* Leaders are spread over the step, and each is a process of another server. */
static void bootstrap(struct measure *m)
{
    uint32_t n = m->servers < LEADERS ? m->servers : LEADERS, every = m->servers / n;
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls calls = calls_new(n, m->data);
    struct procset *callers = sim_must(calloc(n, sizeof *callers));
    sim_begin(sim);
    for (uint32_t i = 0; i < n; i++) {
        struct engine_call *call = &calls.all[i].call;
        uint32_t rank = i * every * SIM_RANKS;
        if (procset_add(&callers[i], SIM_NSPACE, rank, rank) != 0)
            abort();
        procset_canonical(&callers[i]);
        call->id = "ocean";
        call->caller = &callers[i];
        call->leaders = n;
        call->flags = ENGINE_WANT_CONTEXT_ID;
        sim_call(sim, i * every, &calls.all[i], engine_lead);
    }
    sim_run(sim, PATIENCE_MS);
    m->good = all_succeeded(sim);
    take(m, sim);
    sim_free(sim);
    for (uint32_t i = 0; i < n; i++)
        procset_free(&callers[i]);
    free(callers);
    calls_free(&calls);
}

/* @param ngroups constructs at once, each by the same servers */
static void many(struct measure *m, uint32_t ngroups)
{
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls *groups = sim_must(calloc(ngroups, sizeof *groups));
    char id[16];
    sim_begin(sim);
    for (uint32_t g = 0; g < ngroups; g++) {
        snprintf(id, sizeof id, "g%u", g);
        groups[g] = calls_new(MEETING, m->data);
        sign(&groups[g], COLL_CONSTRUCT, id, MEETING);
        for (uint32_t i = 0; i < MEETING; i++)
            sim_call(sim, i, &groups[g].all[i], engine_call);
    }
    sim_run(sim, PATIENCE_MS);
    m->good = all_succeeded(sim);
    take(m, sim);
    sim_free(sim);
    for (uint32_t g = 0; g < ngroups; g++)
        calls_free(&groups[g]);
    free(groups);
}

static void groups_10(struct measure *m)
{
    many(m, 10);
}

static void groups_10000(struct measure *m)
{
    many(m, MANY);
}

/* @return a server below the root that has servers below it, as an empty operation has shown */
static uint32_t inner_server(const struct sim *sim)
{
    uint32_t root = 0;
    while (sim->nodes[root].above != SIM_NONE)
        root++;
    for (uint32_t i = 0; i < sim->nnodes; i++)
        if (sim->nodes[i].above == root && sim->nodes[i].releases_out > 1)
            return i;
    return SIM_NONE;
}

/* The operation once to see who is where, and once more with engines of their own, in which an
 * inner server dies. @param early before its own call; else once the operation has succeeded */
static void lost(struct measure *m, enum coll_kind kind, bool early)
{
    struct sim *sim = sim_new(m->servers, ARITY);
    struct calls calls = calls_new(m->servers, 0);
    sign(&calls, kind, kind == COLL_FENCE ? "" : "ocean", m->servers);
    call_all(sim, &calls);
    sim_run(sim, PATIENCE_MS);
    uint32_t victim = inner_server(sim);
    bool good = all_succeeded(sim) && victim != SIM_NONE;
    sim_free(sim);
    calls_free(&calls);
    if (!good)
        return;
    sim = sim_new(m->servers, ARITY);
    calls = calls_new(m->servers, 0);
    sign(&calls, kind, kind == COLL_FENCE ? "" : "ocean", m->servers);
    if (early)
        sim_kill(sim, victim);
    else
        sim->victim = victim;
    call_all(sim, &calls);
    sim_run(sim, LOSS_MS);
    sim_tell_loss(sim, victim);
    sim_run(sim, PATIENCE_MS);
    m->good = sim->nodes[victim].dead;
    for (uint32_t i = 0; i < m->servers; i++)
        if (i != victim && !sim->sampled)
            m->good =
                m->good && calls.all[i].answered && calls.all[i].status == (early ? SIM_LOST : 0);
    take(m, sim);
    sim_free(sim);
    calls_free(&calls);
}

static void lost_fence(struct measure *m)
{
    lost(m, COLL_FENCE, true);
}

static void lost_construct(struct measure *m)
{
    lost(m, COLL_CONSTRUCT, false);
}

const struct measured measures[] = {
    {"fence", 0, fence, "a fence without data"},
    {"fence-data", 100, fence, "a fence with 100 bytes of each server"},
    {"construct", 0, construct, "a group's construct with a context id"},
    {"construct-data", 100, construct, "the same with 100 bytes of each server"},
    {"destruct", 0, destruct, "the destruct of that group"},
    {"bootstrap", 0, bootstrap, "a bootstrap by 1,024 leaders, each on a server of its own"},
    {"groups-10", 0, groups_10, "10 constructs at once, all by the same 16 servers"},
    {"groups-10000", 0, groups_10000, "10,000 constructs at once, all by the same 16 servers"},
    {"lost-fence", 0, lost_fence,
     "a fence that fails, as a server with others below it is dead from the start"},
    {"lost-construct", 0, lost_construct,
     "a construct that succeeds, and a server with others below it dies before it passes that on"},
};
const uint32_t nmeasures = sizeof measures / sizeof *measures;
