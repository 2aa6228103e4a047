/* SPDX-License-Identifier: BSD-3-Clause */
/* ABSENT: nodes whose servers have left, as a set of ranks of the step's namespace; u32 count, {
 * u32 node, u32 rank, u32 signal, u32 exit code }…: tasks that failed there before PMIx_Init. */
#include "common/server/peers/absent.h"

#include "common/server/peers/departed.h"
#include "common/server/steps/steps.h"
#include "common/tracker/values/tree.h"
#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/clock.h"
#include "common/util/log.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAUSES_MAX = 16,  /* where so many have failed, a server that waits for all knows of one */
    CAUSE_BYTES = 16, /* on the wire */
    PASS_ON_MS = 50,  /* for all that leave together */
    GOODBYE_MS = 500, /* to find a server that is there */
    EARLY_MS = 1000,  /* the same, when the others may not have started yet */
    GOODBYES_MAX = 8, /* servers that are tried */
    LOOK_MS = 2,      /* between looks whether a goodbye has arrived */
};

/* A task that failed before PMIx_Init: of a program that cannot be started there, say. */
struct cause {
    uint32_t node, rank, sig, code;
};

struct absent {
    bool *left;  /* by node */
    bool *heard; /* by node: something has come from it */
    uint32_t nleft;
    struct cause causes[CAUSES_MAX];
    uint32_t ncauses;
    struct timer pass_on; /* it runs while there is news */
    uint32_t from;        /* the server that has brought all of the news; TREE_NONE: several have */
};

void absent_close(struct server *server)
{
    if (server->absent != NULL) {
        timer_stop(&server->absent->pass_on);
        free(server->absent->left);
        free(server->absent->heard);
    }
    free(server->absent);
    server->absent = NULL;
}

/* ---- the tree ---- */

static struct tree tree_of(const struct server *server)
{
    return (struct tree){.n = server->boot.nnodes, .arity = (uint32_t)server->conf.tree_arity};
}

/* The server that stands in the place @p at, or TREE_NONE: all there and below have left. */
static uint32_t stand_in(const struct tree *tree, const bool *left, uint32_t at)
{
    uint32_t found = left[at] ? TREE_NONE : at, child;
    for (uint32_t i = 0; found == TREE_NONE && i < tree->arity; i++) {
        if ((child = tree_child(tree, at, i)) == TREE_NONE)
            break;
        found = stand_in(tree, left, child);
    }
    return found;
}

static void send_all(struct server *server, uint32_t to)
{
    const struct absent *a = server->absent;
    struct procset set = {0};
    struct wire_out frame = {0};
    for (uint32_t node = 0, end; node < server->boot.nnodes; node = end + 1) {
        for (end = node; end < server->boot.nnodes && a->left[end]; end++)
            ;
        if (end > node)
            frame.failed |= procset_add(&set, server->boot.nspace, node, end - 1) != 0;
    }
    procset_canonical(&set);
    wire_put_u8(&frame, FRAME_ABSENT);
    procset_write(&set, &frame);
    wire_put_u32(&frame, a->ncauses);
    for (uint32_t i = 0; i < a->ncauses; i++) {
        wire_put_u32(&frame, a->causes[i].node);
        wire_put_u32(&frame, a->causes[i].rank);
        wire_put_u32(&frame, a->causes[i].sig);
        wire_put_u32(&frame, a->causes[i].code);
    }
    link_send(server->link, to, &frame);
    procset_free(&set);
}

/* To the neighbours of this server in the tree, except the neighbour that has brought the news. */
static void pass_around(struct server *server, const bool *gone)
{
    const struct absent *a = server->absent;
    struct tree tree = tree_of(server);
    uint32_t self = server->boot.node, at = self, below = TREE_NONE, above;
    while (at != TREE_NONE) { /* all places that we hold */
        for (uint32_t i = 0; i < tree.arity; i++) {
            uint32_t child = tree_child(&tree, at, i);
            uint32_t to =
                child != TREE_NONE && child != below ? stand_in(&tree, gone, child) : TREE_NONE;
            if (to != TREE_NONE && to != a->from)
                send_all(server, to);
        }
        below = at;
        at = tree_parent(&tree, at);
        if (at == TREE_NONE)
            return;
        above = stand_in(&tree, gone, at);
        if (above == self)
            continue;
        if (above != a->from)
            send_all(server, above);
        return;
    }
}

/* The tree goes past servers that have left or are lost. */
static void pass_on(struct server *server)
{
    uint32_t n = server->boot.nnodes;
    bool *gone = malloc(n * sizeof *gone);
    for (uint32_t i = 0; gone != NULL && i < n; i++)
        gone[i] = server->absent->left[i] || engine_is_lost(server->engine, i);
    pass_around(server, gone != NULL ? gone : server->absent->left);
    free(gone);
}

static void on_pass_on(void *arg, struct timer *timer)
{
    const struct server *server = arg;
    if (server->told_to_leave)
        timer_after(timer, PASS_ON_MS); /* it goes with our own goodbye */
    else
        pass_on(arg);
}

int absent_open(struct server *server)
{
    struct absent *a = calloc(1, sizeof *a);
    server->absent = a;
    if (a == NULL)
        return -1;
    timer_init(&a->pass_on, &server->timers, on_pass_on, server);
    a->left = calloc(server->boot.nnodes, sizeof *a->left);
    a->heard = calloc(server->boot.nnodes, sizeof *a->heard);
    return a->left != NULL && a->heard != NULL ? 0 : -1;
}

/* ---- hearing of others ---- */

static void describe(const struct absent *a, uint32_t node, char *buf, size_t cap)
{
    const struct cause *c = a->causes;
    while (c < a->causes + a->ncauses && c->node != node)
        c++;
    if (c == a->causes + a->ncauses)
        snprintf(buf, cap, "it has left, for its tasks have ended");
    else if (c->sig != 0)
        snprintf(buf, cap, "rank %u was killed by signal %u (%s) before PMIx_Init", c->rank, c->sig,
                 strsignal((int)c->sig));
    else if (c->code == BOOT_CODE_UNKNOWN)
        snprintf(buf, cap, "rank %u ended before PMIx_Init", c->rank);
    else
        snprintf(buf, cap, "rank %u ended with exit code %u before PMIx_Init", c->rank, c->code);
}

static bool has_cause(const struct absent *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->ncauses; i++)
        if (a->causes[i].node == node)
            return true;
    return false;
}

static void add_cause(struct absent *a, const struct cause *cause)
{
    if (a->ncauses < CAUSES_MAX && !has_cause(a, cause->node))
        a->causes[a->ncauses++] = *cause;
}

static bool read_causes(const struct server *server, struct wire_in *in)
{
    bool good = true;
    uint32_t n = wire_get_count(in, CAUSE_BYTES), at;
    for (uint32_t i = 0; i < n && good; i++) {
        struct cause c;
        c.node = wire_get_u32(in);
        c.rank = wire_get_u32(in);
        c.sig = wire_get_u32(in);
        c.code = wire_get_u32(in);
        good = !in->bad &&
               (c.node != server->boot.node || server->absent->left[server->boot.node]) &&
               nspace_node(server->nspace, server->boot.nspace, c.rank, &at) == 0 && at == c.node;
        if (good && !server->absent->left[c.node])
            add_cause(server->absent, &c);
    }
    return good && wire_end(in);
}

/* @return whether that is news */
static bool note(struct server *server, uint32_t node)
{
    struct absent *a = server->absent;
    char why[128];
    if (a->left[node])
        return false;
    a->left[node] = true;
    a->nleft++;
    server_learn(server, node, RM_LEFT);
    if (server->leaving)
        return true; /* nothing waits here any more */
    describe(a, node, why, sizeof why);
    departed_left(server, node, has_cause(a, node), why);
    return true;
}

void absent_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct absent *a = server->absent;
    struct wire_in in;
    struct procset set = {0};
    bool news = false;
    wire_in_init(&in, body, len);
    procset_read(&set, &in);
    const struct procset_part *part = set.nparts == 1 ? &set.parts[0] : NULL;
    bool good = part != NULL && part->ranks.n > 0 &&
                strcmp(part->nspace, server->boot.nspace) == 0 &&
                part->ranks.v[part->ranks.n - 1].last < server->boot.nnodes &&
                (!procset_has(&set, server->boot.nspace, server->boot.node) ||
                 a->left[server->boot.node]) &&
                read_causes(server, &in);
    if (!good)
        log_warning("a malformed goodbye was dropped");
    for (struct procset_at at = {0}; good && procset_next(&set, &at);)
        news |= note(server, at.rank);
    procset_free(&set);
    if (!news)
        return;
    bool first = !timer_runs(&a->pass_on);
    a->from = first || a->from == from ? from : TREE_NONE;
    if (first)
        timer_after(&a->pass_on, PASS_ON_MS);
}

void absent_heard(struct server *server, uint32_t from, enum frame_type type)
{
    struct absent *a = server->absent;
    if (a->heard[from])
        return;
    a->heard[from] = true;
    server_learn(server, from, RM_HEARD);
    if (a->nleft > 0 && !a->left[from] && type != FRAME_ABSENT && !server->told_to_leave)
        send_all(server, from);
}

/* ---- our own end ---- */

/* The RM ends whole steps by SIGKILL and SIGTERM. */
static bool failed_early(const struct task *task)
{
    return task->state == TASK_EARLY &&
           (task->sig != 0 ? task->sig != SIGKILL && task->sig != SIGTERM : task->code != 0);
}

/* @return whether a task here has failed before PMIx_Init; it is noted */
static bool note_own(struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        struct cause cause = {server->boot.node, here->ranks[k], task->sig, task->code};
        if (!failed_early(task))
            continue;
        add_cause(server->absent, &cause);
        return true;
    }
    return false;
}

/* The next server to say goodbye to: those above us, the nearest first, then any.
 * @param out the servers that have left, or were tried @return TREE_NONE: there is none */
static uint32_t next_hearer(const struct server *server, const bool *out)
{
    struct tree tree = tree_of(server);
    uint32_t above = server->boot.node;
    while ((above = tree_parent(&tree, above)) != TREE_NONE)
        if (!out[above])
            return above;
    return stand_in(&tree, out, tree.root);
}

/* Runs the loop until what was sent to a server is there or given up, and has read what has come
 * meanwhile. @return whether it is there */
static bool arrives(struct server *server, uint32_t node, int64_t until)
{
    uint64_t dropped = server_peer(server, node).dropped;
    timer_stop(&server->absent->pass_on);
    steps_hand_over(server, node);
    send_all(server, node);
    while (now_ms() < until) {
        struct rm_peer peer = server_peer(server, node);
        if (rm_peer_is_lost(peer.state) || peer.dropped != dropped || peer.queued == 0) {
            event_base_loop(server->base, EVLOOP_NONBLOCK);
            return !rm_peer_is_lost(peer.state) && peer.dropped == dropped;
        }
        if (!server_turn(server, LOOK_MS))
            return false;
    }
    return false;
}

/* Others that leave at the same time may have said so to us alone: then all is told once more, to
 * one that has not left. @param early a task here has failed before PMIx_Init @return whether all
 * others have left: there is none to tell */
static bool tell_one(struct server *server, bool early)
{
    struct absent *a = server->absent;
    bool last = false;
    uint32_t n = server->boot.nnodes, tries = 0, to;
    int64_t until = now_ms() + (early ? EARLY_MS : GOODBYE_MS);
    bool *out = calloc(n, sizeof *out);
    while (out != NULL && server->rm != NULL && now_ms() < until) {
        if (tries == 0)
            memcpy(out, a->left, n * sizeof *out);
        to = next_hearer(server, out);
        last = to == TREE_NONE && (tries == 0 || !early);
        if (to == TREE_NONE && tries == 0)
            break; /* all have left */
        if (tries++ == GOODBYES_MAX || to == TREE_NONE) {
            if (!early)
                break;
            tries = 0; /* they may not have started yet */
            continue;
        }
        bool there = arrives(server, to, until);
        if (there && !timer_runs(&a->pass_on))
            break;
        out[to] = !there;
        for (uint32_t i = 0; i < n; i++)
            out[i] |= a->left[i];
    }
    free(out);
    return last;
}

bool absent_tell(struct server *server)
{
    bool early = note_own(server);
    server->absent->left[server->boot.node] = true;
    return tell_one(server, early);
}

bool absent_tell_rest(struct server *server)
{
    return timer_runs(&server->absent->pass_on) && tell_one(server, false);
}
