/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine asks of its surroundings, as muster-server answers it. */
#include "ci/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY = 7 << 16 };

static int64_t clock_of(void *arg)
{
    const struct sim_node *node = arg;
    return (int64_t)node->sim->now;
}

/* There is one namespace, and a server's ranks stand side by side in it. */
static int servers(void *arg, const struct signature *sig, struct places *places)
{
    const struct sim_node *node = arg;
    const struct procset_part *part = &sig->members.parts[0];
    uint32_t next = 0;
    if (sig->members.nparts != 1 ||
        part->ranks.v[part->ranks.n - 1].last / SIM_RANKS >= node->sim->nnodes)
        return -1;
    for (uint32_t i = 0; i < part->ranks.n; i++) {
        uint32_t first = part->ranks.v[i].first / SIM_RANKS,
                 last = part->ranks.v[i].last / SIM_RANKS;
        first = first < next ? next : first;
        if (first <= last && places_add(places, first, last - first + 1) != 0)
            return -1;
        next = last + 1;
    }
    return 0;
}

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *server)
{
    const struct sim_node *node = arg;
    *server = rank / SIM_RANKS;
    return strcmp(nspace, SIM_NSPACE) == 0 && *server < node->sim->nnodes ? 0 : -1;
}

static int members_on(void *arg, const struct procset *set, uint32_t server, struct procset *there)
{
    uint32_t first = server * SIM_RANKS;
    (void)arg;
    for (uint32_t rank = first; rank < first + SIM_RANKS; rank++)
        if (procset_has(set, SIM_NSPACE, rank) && procset_add(there, SIM_NSPACE, rank, rank) != 0)
            return -1;
    procset_canonical(there);
    return 0;
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    (void)arg;
    (void)sig;
    return 0;
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    (void)arg;
    (void)sig;
    (void)gone;
}

static const char *name(void *arg, uint32_t server)
{
    static char text[16];
    (void)arg;
    snprintf(text, sizeof text, "c%05u", server);
    return text;
}

static void send_frame(void *arg, uint32_t to, struct wire_out *frame, struct shared_bytes *body)
{
    sim_send(arg, to, frame, body);
}

static void ranks(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap)
{
    (void)arg;
    (void)sig, (void)some;
    snprintf(buf, cap, "%u servers from c%05u on", n, n > 0 ? nodes[0] : 0);
}

struct engine *sim_engine(struct sim_node *node, uint32_t index, uint32_t arity)
{
    node->timers = (struct timers){.now = clock_of, .arg = node};
    const struct engine_env env = {
        .arg = node,
        .self = index,
        .nnodes = node->sim->nnodes,
        .arity = arity,
        .library = LIBRARY,
        .ids = index,
        .id_step = node->sim->nnodes,
        .codes = {SIM_OTHER - 1, SIM_LOST, SIM_OTHER - 2, SIM_OTHER - 3, SIM_OTHER - 4,
                  SIM_OTHER - 5},
        .timers = &node->timers,
        .servers = servers,
        .node_of = node_of,
        .members_on = members_on,
        .local_status = local_status,
        .local_gone = local_gone,
        .name = name,
        .send = send_frame,
        .ranks = ranks,
    };
    return sim_must(engine_new(&env));
}
