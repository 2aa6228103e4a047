/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws a schedule from its seed. */
#include "ci/campaign.d/campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 5, ROUNDS_MAX = 4 };

bool chance(struct run *run, uint32_t percent)
{
    return below(run, 100) < percent;
}

uint32_t below(struct run *run, uint32_t n)
{
    return loopback_below(&run->random, n);
}

const char *ns_name(char ns)
{
    return ns == 'a' ? "a" : "b";
}

static void add(struct procset *set, struct proc proc)
{
    if (procset_add(set, ns_name(proc.ns), proc.rank, proc.rank) != 0)
        abort();
    procset_canonical(set);
}

static struct weather draw_weather(struct run *run)
{
    struct weather w = {0};
    if (chance(run, 20)) /* a fine day: everything has to succeed */
        return w;
    w.lossy = chance(run, 20);
    w.slow = chance(run, 20);
    w.crashes = chance(run, 25);
    w.deaths = chance(run, 25);
    w.hands_up = chance(run, 50);
    w.deadlines = chance(run, 40);
    w.failures = chance(run, 25);
    w.cancels = chance(run, 15);
    return w;
}

static struct op *new_op(struct group *group, enum coll_kind kind, uint32_t instance)
{
    struct op *op = calloc(1, sizeof *op), **end = &group->ops;
    if (op == NULL)
        abort();
    op->group = group;
    op->kind = kind;
    op->method = group->method;
    op->instance = instance;
    op->callers = calloc(2ul * group->run->nnodes, sizeof *op->callers);
    if (op->callers == NULL)
        abort();
    while (*end != NULL)
        end = &(*end)->next;
    *end = op;
    return op;
}

static struct caller *new_caller(struct op *op, struct proc proc, bool leader)
{
    struct caller *caller = &op->callers[op->ncallers++];
    caller->op = op;
    caller->proc = proc;
    caller->leader = leader;
    op->nleaders += leader;
    return caller;
}

static void sign(struct op *op)
{
    struct wire_out out = {0};
    signature_write(&out, op->kind, op->group->id, &op->leaders);
    op->sig = wire_out_take(&out, &op->siglen);
}

static struct procset draw_participants(struct run *run)
{
    struct procset set = {0};
    bool whole = chance(run, 40);
    for (char ns = 'a'; ns <= 'b'; ns++)
        for (uint32_t rank = 0; rank < run->nnodes; rank++)
            if (whole || chance(run, 40))
                add(&set, (struct proc){ns, rank});
    if (set.nparts == 0)
        add(&set, (struct proc){'a', below(run, run->nnodes)});
    return set;
}

/* Disjoint sets, and any others that differ, may use one id at once. Those that lose members may
 * come to be the same. */
static void borrow_id(struct group *group, const struct procset *participants)
{
    for (const struct group *g = group->next; g != NULL; g = g->next)
        if (g->method == METHOD_PLAIN && procset_equal(&g->ops->leaders, participants))
            return;
    for (struct group *g = group->next; g != NULL; g = g->next)
        if (g->method == METHOD_PLAIN && !g->survives) {
            memcpy(group->id, g->id, sizeof group->id);
            group->alone = g->alone = false;
            return;
        }
}

/* Construct, some fences and destruct; or fences, or constructs, alone; or connect, a fence and
 * disconnect. */
static void plan_plain(struct run *run, struct group *group, uint32_t rounds)
{
    static const enum coll_kind life[] = {COLL_CONSTRUCT, COLL_FENCE, COLL_FENCE, COLL_DESTRUCT};
    static const enum coll_kind fences[] = {COLL_FENCE}, constructs[] = {COLL_CONSTRUCT};
    static const enum coll_kind connects[] = {COLL_CONNECT, COLL_FENCE, COLL_DISCONNECT};
    static const enum coll_kind *const programs[] = {life, fences, constructs, connects};
    static const uint32_t lengths[] = {4, 1, 1, 3};
    struct procset participants = draw_participants(run);
    uint32_t which = below(run, 4);
    group->survives = chance(run, 30);
    if (!group->survives && chance(run, 30))
        borrow_id(group, &participants);
    group->pipelined = chance(run, 50) && !group->survives;
    for (uint32_t i = 0; i < rounds * lengths[which]; i++) {
        struct op *op = new_op(group, programs[which][i % lengths[which]], i);
        op->survives = group->survives && coll_traits(op->kind)->is_group;
        procset_unite(&op->leaders, &participants);
        procset_unite(&op->all, &participants);
        sign(op);
        for (uint32_t rank = 0; rank < run->nnodes; rank++)
            if (procset_has(&participants, "a", rank) || procset_has(&participants, "b", rank))
                new_caller(op, (struct proc){'a', rank}, true);
    }
    procset_free(&participants);
}

/* A leader adds all, or, when everything succeeds, a part that some other one completes: who is
 * added by one leader only is not told of a failure. Some add one that leads anyway. */
static void plan_adding(struct run *run, struct op *op, bool fine)
{
    for (uint32_t l = 0; l < op->nleaders; l++) {
        for (uint32_t i = op->nleaders; i < op->ncallers; i++)
            if (!fine || i % op->nleaders == l || chance(run, 30))
                add(&op->callers[l].adds, op->callers[i].proc);
        if (chance(run, 30))
            add(&op->callers[l].adds, op->callers[below(run, op->nleaders)].proc);
    }
}

/* One round: other leaders and other members each time. A nameless call stands for anybody of its
 * server, so there is one process on a server then. Leaders are of namespace "a": each server has
 * one call for all its leaders. */
static void plan_round(struct run *run, struct group *group, uint32_t instance, bool fine)
{
    struct op *op = new_op(group, COLL_CONSTRUCT, instance);
    for (int members = 0; members < 2; members++)
        for (uint32_t rank = 0; rank < run->nnodes; rank++)
            for (char ns = 'a'; ns <= 'b'; ns++) {
                struct proc proc = {ns, rank};
                bool alone = run->weather.nameless || (!members && op->method == METHOD_ADDING);
                bool taken = procset_has(&op->all, ns_name(ns), rank);
                if (run->weather.nameless && procset_has(&op->all, "a", rank))
                    taken = true;
                if ((ns == 'b' && alone) || taken || !chance(run, 40))
                    continue;
                new_caller(op, proc, !members);
                add(members ? &op->all : &op->leaders, proc);
                add(&op->all, proc);
            }
    if (op->nleaders == 0) { /* the last one drawn leads, then, or some process */
        if (op->ncallers == 0)
            add(&op->all, new_caller(op, (struct proc){'a', 0}, false)->proc);
        struct caller *first = &op->callers[0];
        first->proc.ns = 'a';
        first->leader = true;
        op->nleaders = op->ncallers = 1;
        procset_free(&op->all);
        add(&op->leaders, first->proc);
        add(&op->all, first->proc);
    }
    plan_adding(run, op, fine);
    op->survives = op->method == METHOD_ADDING && chance(run, 30);
    sign(op);
}

static void plan_group(struct run *run, uint32_t number, bool fine)
{
    struct group *group = calloc(1, sizeof *group);
    if (group == NULL)
        abort();
    group->run = run;
    group->number = number;
    group->next = run->groups;
    run->groups = group;
    snprintf(group->id, sizeof group->id, "g%u", number);
    group->alone = true;
    group->method = chance(run, 50) ? METHOD_PLAIN : 1 + below(run, METHODS - 1);
    uint32_t rounds = 1 + below(run, ROUNDS_MAX);
    if (group->method == METHOD_PLAIN)
        plan_plain(run, group, rounds);
    for (uint32_t i = 0; group->method != METHOD_PLAIN && i < rounds; i++) {
        if (chance(run, 20)) /* the same id by the other method */
            group->method = METHOD_ADDING + METHOD_BOOTSTRAP - group->method;
        plan_round(run, group, i, fine);
    }
    for (struct op *op = group->ops; op != NULL; op = op->next)
        op->quiet = !group->survives && !op->survives && chance(run, 30);
    struct op *last = group->ops; /* after it other leaders might wait, see is_shadowed() */
    while (last->next != NULL)
        last = last->next;
    last->disagree = run->weather.failures && last->method == METHOD_BOOTSTRAP &&
                     last->nleaders > 1 && chance(run, 30);
}

static int32_t local_status(void *arg, uint32_t node, const struct signature *sig)
{
    const struct run *run = arg;
    for (char ns = 'a'; ns <= 'b'; ns++)
        if (procset_has(&sig->members, ns_name(ns), node) && is_dead(run, (struct proc){ns, node}))
            return STATUS_DEAD;
    return 0;
}

static void local_gone(void *arg, uint32_t node, const struct signature *sig, struct procset *gone)
{
    const struct run *run = arg;
    for (char ns = 'a'; ns <= 'b'; ns++)
        if (procset_has(&sig->members, ns_name(ns), node) && is_dead(run, (struct proc){ns, node}))
            add(gone, (struct proc){ns, node});
}

static void left_out(void *arg, uint32_t node)
{
    struct run *run = arg;
    trace(run, "server %u is left out", node);
    run->lost_at[node] = loopback_now(run->net);
}

/* Order: whoever counts as having left has said all before. */
static void too_late(void *arg, uint32_t node, uint32_t from)
{
    struct run *run = arg;
    if (!loopback_dead(run->net, node))
        fault(run, "order", "server %u has left, and server %u hears of it afterwards", from, node);
}

/* A chain, a bush, or something between them, in which no server is above one before it. */
static void draw_shape(struct run *run)
{
    struct loopback_random random = {.state = run->seed * 2 + 1};
    uint32_t reach = 1 + loopback_below(&random, 4);
    for (uint32_t i = 0; i < run->nnodes; i++)
        run->parents[i] =
            i == 0 ? TREE_NONE : i - 1 - loopback_below(&random, i < reach ? i : reach);
}

void plan(struct run *run, uint32_t servers)
{
    static const uint32_t arities[] = {2, 3, 16};
    const struct weather none = {0};
    run->random.state = run->seed * 2 + 1;
    run->nnodes = 1 + below(run, chance(run, 15) ? NODES_DRAWN : 10);
    if (servers > 0)
        run->nnodes = servers;
    run->weather = draw_weather(run);
    bool fine = memcmp(&run->weather, &none, sizeof none) == 0;
    /* Where frames vanish unnoticed, a view would wait for ever. Where they take longer than it has
     * patience, servers have each other left out, and two views may go on for a while. */
    bool agreed = run->seed % 3 != 0 && !run->weather.lossy && !run->weather.slow;
    run->weather.parts = agreed && run->weather.crashes && run->nnodes > 5 && run->seed % 2 == 0;
    run->weather.nameless = chance(run, 30);
    struct loopback_conf conf = {
        .nnodes = run->nnodes,
        .arity = arities[below(run, 3)],
        .seed = run->seed,
        .foreign = run->seed % 3 == 0,
        .agreed = agreed,
        .delay_max = 1 + below(run, run->weather.slow ? 12000 : 150),
        .reorder = chance(run, 70),
        .duplicate = chance(run, 70) ? below(run, 250) : 0,
        .drop = run->weather.lossy ? 1 + below(run, 100) : 0,
        .cut = run->seed % 4 == 2 ? 30 : 0,
        .stall = chance(run, 50) ? 3 : 0,
        .large = run->seed % 5 > 0 ? 1 + (uint32_t)(run->seed % 400) : 0,
        .piece = 1 + (uint32_t)(run->seed % 7) * 60,
        .arg = run,
        .local_status = local_status,
        .local_gone = local_gone,
        .missed = miss,
        .left_out = left_out,
        .too_late = too_late,
        .filter = trace_frame,
    };
    if (run->seed % 3 == 1) {
        draw_shape(run);
        conf.parents = run->parents;
    }
    run->delay_max = conf.delay_max;
    run->foreign = conf.foreign;
    run->net = loopback_new(&conf);
    for (uint32_t i = 0, n = 1 + below(run, GROUPS_MAX); i < n; i++)
        plan_group(run, i, fine);
}

static void free_op(struct op *op)
{
    for (uint32_t i = 0; i < op->ncallers; i++)
        procset_free(&op->callers[i].adds);
    procset_free(&op->leaders);
    procset_free(&op->all);
    free(op->callers);
    free(op->sig);
    free(op);
}

void plan_free(struct run *run)
{
    struct group *group;
    struct op *op;
    while ((group = run->groups) != NULL) {
        run->groups = group->next;
        while ((op = group->ops) != NULL) {
            group->ops = op->next;
            free_op(op);
        }
        free(group);
    }
}
