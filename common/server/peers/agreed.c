/* SPDX-License-Identifier: BSD-3-Clause */
/* EARLY: u32 rank, u32 signal, u32 exit code */
#include "common/server/peers/agreed.h"

#include "common/server/ending.h"
#include "common/server/peers/ask_all.h"
#include "common/server/peers/departed.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/signals.h"
#include "common/server/totals.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHY_MAX = 160,
    EARLY_MAX = 16,   /* where so many have failed, a server that waits for all knows of one */
    LEAVE_MS = 2000,  /* for the others to let this server go: one of them may never have come */
    COUNTS_MS = 1000, /* for what a server that was let go has counted */
};

/* What is known here of a server of the step. */
struct of_node {
    char why[WHY_MAX]; /* of a lost one, as this server has noticed; "": it has not */
    bool early;        /* a task has failed there before PMIx_Init: that is why */
};

/* How this server stands to the view. */
enum standing {
    IN_VIEW,
    OUT_OF_VIEW, /* let go, or left out */
    ALL_HAVE_GONE
};

struct agreed {
    struct of_node **nodes; /* NULL: nothing */
    uint32_t nearly;        /* reports that this server has said as the head */
    enum standing standing;
    uint32_t let_go_by; /* a server that stays; itself: none is known */
    uint32_t lost;      /* servers that were left out */
};

static struct of_node *node_of(struct server *server, uint32_t node)
{
    struct of_node **at = &server->agreed->nodes[node];
    if (*at == NULL)
        *at = calloc(1, sizeof **at);
    return *at;
}

/* ---- the surroundings of the view ---- */

static void send_frame(void *arg, uint32_t node, enum frame_type type, struct wire_out *body)
{
    struct server *server = arg;
    struct wire_out head = {0};
    size_t len;
    void *data = wire_out_take(body, &len);
    struct shared_bytes *bytes = shared_bytes_take(data, len);
    wire_put_u8(&head, type);
    steps_send(server, node, &head, bytes);
    shared_bytes_drop(bytes);
    wire_out_free(&head);
}

static void hear(void *arg, uint32_t origin, const void *text, size_t len)
{
    struct server *server = arg;
    bool ends = len > 0 && *(const uint8_t *)text == FRAME_ENDING; /* the user may be told by us */
    if (len > 0 && (!server->leaving || ends))
        server->hooks->said(server, origin, text, len);
}

static void settled(void *arg)
{
    struct server *server = arg;
    if (!server->leaving)
        spread_settled(server);
}

void agreed_hand_over(struct server *server)
{
    uint32_t heir = view_heir(server->view);
    if (heir == server->boot.node)
        return;
    steps_hand_over(server, heir);
    if (view_head(server->view) !=
        server->boot.node) /* which keeps its own, as it may be the last */
        totals_hand_over(server, heir);
}

/* Nothing is sent any more to a server that was given up. */
static void forget(struct server *server, uint32_t node)
{
    direct_forget(server->direct, node);
    link_forget(server->link, node);
}

/* Nothing waits here any more when this server leaves. */
static void changed(void *arg, const struct ranges *lost, const struct ranges *left)
{
    struct server *server = arg;
    server->agreed->lost += ranges_count(lost);
    for (struct ranges_at at = {0}; ranges_next(left, &at);) {
        const struct of_node *of = server->agreed->nodes[at.number];
        bool early = of != NULL && of->early;
        if (!server->leaving)
            departed_left(server, at.number, early,
                          early ? of->why : "it has left, for its tasks have ended");
    }
    for (struct ranges_at at = {0}; ranges_next(lost, &at) && !server->leaving;) {
        const struct of_node *of = server->agreed->nodes[at.number];
        forget(server, at.number);
        if (of != NULL && of->early)
            departed_left(server, at.number, true, of->why);
        else
            departed_lost(server, at.number, of != NULL && of->why[0] != '\0' ? of->why : NULL);
    }
    if (!server->leaving)
        server->hooks->view_changed(server, lost, left);
    else
        agreed_hand_over(server); /* ahead of the wish, which is said again */
}

static void kill_own_tasks(struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    struct procset own = {0};
    for (uint32_t k = 0; k < here->ntasks; k++)
        procset_add(&own, server->boot.nspace, here->ranks[k], here->ranks[k]);
    procset_canonical(&own);
    signals_here(server, &own, SIGKILL);
    procset_free(&own);
}

/* A server that was left out ends its tasks, as the others go on without these. */
static void over(void *arg, enum view_over how, const char *why)
{
    struct server *server = arg;
    char tell[512];
    bool all = server->conf.on_task_loss == CONF_TASK_LOSS_END_STEP;
    server->agreed->standing = how == VIEW_ALL_GO ? ALL_HAVE_GONE : OUT_OF_VIEW;
    if (how != VIEW_LEFT_OUT || server->told_to_leave || server->leaving || server->ending)
        return;
    snprintf(tell, sizeof tell, "muster-server on %s was left out: %s; ending %s%s",
             boot_here(&server->boot)->name, why, all ? "the " : "the tasks there",
             all ? log_unit() : "");
    struct rm_ending ending = ending_of_host(tell);
    if (all) {
        server_end_step(server, &ending, server->boot.node);
        return;
    }
    log_cause("%s", tell);
    kill_own_tasks(server);
}

void agreed_open(struct server *server)
{
    const struct boot *boot = &server->boot;
    const struct view_env env = {.arg = server,
                                 .self = boot->node,
                                 .nnodes = boot->nnodes,
                                 .arity = (uint32_t)server->conf.tree_arity,
                                 .timers = &server->timers,
                                 .send = send_frame,
                                 .hear = hear,
                                 .answer = ask_all_serve,
                                 .settled = settled,
                                 .changed = changed,
                                 .over = over};
    struct agreed *a = server->agreed = calloc(1, sizeof *a);
    server->view = view_new(&env);
    a->nodes = calloc(boot->nnodes, sizeof *a->nodes);
    a->let_go_by = boot->node;
}

void agreed_close(struct server *server)
{
    struct agreed *a = server->agreed;
    server->agreed = NULL;
    view_free(server->view);
    server->view = NULL;
    if (a == NULL)
        return;
    for (uint32_t node = 0; node < server->boot.nnodes; node++)
        free(a->nodes[node]);
    free(a->nodes);
    free(a);
}

/* ---- what comes ---- */

void agreed_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    bool in_view = server->agreed->standing == IN_VIEW;
    view_take(server->view, from, body, len);
    if (in_view && server->agreed->standing == OUT_OF_VIEW)
        server->agreed->let_go_by = from;
}

void agreed_lost(void *arg, uint32_t node, const char *why)
{
    struct server *server = arg;
    forget(server, node);
    if (node >= server->boot.nnodes) {
        departed_lost(server, node, why);
        return;
    }
    struct of_node *of = node_of(server, node);
    if (!of->early)
        snprintf(of->why, sizeof of->why, "%s", why);
    enum rm_peer_state state = server->rm_ops->peer(server->rm, node).state;
    view_accuse(server->view, node, state == RM_PEER_LEFT);
}

/* @return whether it is well formed */
static bool note_early(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    uint32_t node;
    wire_in_init(&in, body, len);
    uint32_t rank = wire_get_u32(&in), sig = wire_get_u32(&in), code = wire_get_u32(&in);
    bool good = wire_end(&in) && nspace_node(server->nspace, server->boot.nspace, rank, &node) == 0;
    struct of_node *of = good ? node_of(server, node) : NULL;
    if (of == NULL) {
        log_warning("a malformed word of %s was dropped", nspace_name(server->nspace, from));
        return false;
    }
    of->early = true;
    if (sig != 0)
        snprintf(of->why, sizeof of->why, "rank %u was killed by signal %u (%s) before PMIx_Init",
                 rank, sig, strsignal((int)sig));
    else if (code == BOOT_CODE_UNKNOWN)
        snprintf(of->why, sizeof of->why, "rank %u ended before PMIx_Init", rank);
    else
        snprintf(of->why, sizeof of->why, "rank %u ended with exit code %u before PMIx_Init", rank,
                 code);
    return true;
}

void agreed_early(struct server *server, uint32_t from, const void *body, size_t len)
{
    note_early(server, from, body, len);
}

void agreed_early_report(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_out word = {0};
    if (server->agreed->nearly >= EARLY_MAX || !note_early(server, from, body, len))
        return;
    server->agreed->nearly++;
    wire_put_u8(&word, FRAME_EARLY);
    wire_put_raw(&word, body, len);
    server_say(server, &word);
}

/* ---- our own end ---- */

/* The RM ends whole steps by SIGKILL and SIGTERM. */
static bool failed_early(const struct task *task)
{
    return task->state == TASK_EARLY &&
           (task->sig != 0 ? task->sig != SIGKILL && task->sig != SIGTERM : task->code != 0);
}

/* Tells the head of a task here that has failed before PMIx_Init. */
static void report_early(struct server *server)
{
    const struct boot_node *here = boot_here(&server->boot);
    uint32_t head = view_head(server->view);
    for (uint32_t k = 0; k < here->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        struct wire_out report = {0};
        if (!failed_early(task))
            continue;
        wire_put_u8(&report, FRAME_EARLY);
        wire_put_u32(&report, here->ranks[k]);
        wire_put_u32(&report, task->sig);
        wire_put_u32(&report, task->code);
        if (head != server->boot.node)
            steps_send(server, head, &report, NULL);
        else
            agreed_early_report(server, head, report.data + 1, report.len - 1);
        wire_out_free(&report);
        return;
    }
}

/* A head that was let go before hands over what all have counted only then, and this server may be
 * the head, and go, a moment later. */
static void await_counts(struct server *server)
{
    int64_t until = now_ms() + COUNTS_MS, left;
    while (!totals_are_whole(server, server->boot.nnodes - server->agreed->lost) &&
           server->rm != NULL && (left = until - now_ms()) > 0)
        if (!server_turn(server, left))
            break;
}

bool agreed_leave(struct server *server)
{
    const struct agreed *a = server->agreed;
    int64_t until = now_ms() + LEAVE_MS, left;
    report_early(server);
    agreed_hand_over(server);
    view_leave(server->view);
    if (a->standing == IN_VIEW)
        server_tell_launcher(BOOT_SAYS_STAYS);
    while (a->standing == IN_VIEW && server->rm != NULL && (left = until - now_ms()) > 0)
        if (!server_turn(server, left))
            break;
    if (a->let_go_by != server->boot.node)
        totals_hand_over(server, a->let_go_by);
    bool last = a->standing == ALL_HAVE_GONE && view_head(server->view) == server->boot.node;
    if (last)
        await_counts(server);
    return last;
}
