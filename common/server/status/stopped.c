/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that wait for a debugger: counted here, and over the step. */
#include "common/server/status/stopped.h"

#include "common/server/status/stalled.h"
#include "common/server/tasks/signals.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAITERS_MAX = 64 /* a step has one spawner; who asks for more is wrong */ };

/* A server that waits until all are ready. */
struct waiter {
    uint32_t from;
    uint64_t id;
};

/* Tasks of a node, or of the step. */
struct counts {
    uint32_t stopped, gone, released; /* gone: ended, and not after a release: not awaited */
};

/* What the head knows of a node. */
struct of_node {
    struct counts counts;
    bool heard; /* in this view, or it is not in it */
};

struct stops {
    uint32_t head;           /* the head of the view, to which this server tells its counts */
    struct counts told;      /* of this node, as the head knows it */
    struct of_node *of_node; /* the head's; NULL: none has told */
    struct counts sum;       /* of these */
    uint32_t awaited;        /* servers that a new head has to hear before it says a sum */
    char where[STOPPED_WHERE_SIZE]; /* PMIX_BREAKPOINT, as last heard: here, or from a server */
    struct timer report;
    struct waiter waiters[WAITERS_MAX];
    unsigned nwaiters;
};

uint32_t stopped_wanted(const struct server *server)
{
    const struct stop *stop = &server->stopped.stop;
    return stop->where != STOP_NOWHERE && stop->rank != STOP_ALL ? 1 : server->boot.ntasks;
}

/* ---- all servers: how it stands with the step ---- */

/* Nothing that waits may say so: no process may be in an operation. */
static void on_report(void *arg, struct timer *timer)
{
    struct server *server = arg;
    const struct stopped *stopped = &server->stopped;
    (void)timer;
    if (stopped->n > 0 && server->stops->head == server->boot.node)
        stalled(server, (uint64_t)server->conf.stall_report,
                "processes wait for a debugger to release them");
}

static void answer(struct server *server, const struct waiter *waiter)
{
    struct wire_out out = {0};
    wire_put_u32(&out, server->stopped.n);
    wire_put_str(&out, server->stopped.where);
    asks_reply(server->asks, waiter->from, waiter->id, 0, out.data, out.len);
    wire_out_free(&out);
}

/* Whether all that are to wait do. */
static bool is_ready(const struct server *server, const struct counts *sum)
{
    return sum->stopped > 0 && sum->stopped + sum->gone >= stopped_wanted(server);
}

/* A server that tells of an end alone may not know where others wait, and says "". */
static void note_where(struct server *server, const char *where)
{
    struct stops *stops = server->stops;
    if (where[0] != '\0')
        snprintf(stops->where, sizeof stops->where, "%s", where);
}

static void set(struct server *server, const struct counts *sum)
{
    struct stopped *stopped = &server->stopped;
    struct stops *stops = server->stops;
    uint32_t n = sum->stopped;
    bool was_ready = stopped->ready;
    if (stopped->n == 0 && n > 0 && server->conf.stall_report > 0) {
        timer_init(&stops->report, &server->timers, on_report, server);
        timer_after(&stops->report, server->conf.stall_report * 1000ll);
    }
    if (n == 0)
        timer_stop(&stops->report);
    stopped->n = n;
    stopped->ready = is_ready(server, sum);
    snprintf(stopped->where, sizeof stopped->where, "%s", n == 0 ? "" : stops->where);
    server_stand_still(server);
    if (n == 0)
        log_info("no process waits for a debugger any more");
    if (!stopped->ready || was_ready)
        return;
    log_info("%u processes wait for a debugger, at %s", n, stopped->where);
    server->hooks->ready(server);
    while (stops->nwaiters > 0)
        answer(server, &stops->waiters[--stops->nwaiters]);
}

static void put(struct wire_out *frame, const struct counts *counts, const char *where)
{
    wire_put_u8(frame, FRAME_STOPPED);
    wire_put_u32(frame, counts->stopped);
    wire_put_u32(frame, counts->gone);
    wire_put_u32(frame, counts->released);
    wire_put_str(frame, counts->stopped > 0 ? where : "");
}

/* @param most tasks that there are @return whether it makes sense */
static bool get(const void *body, size_t len, uint32_t most, struct counts *counts, char *where)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    counts->stopped = wire_get_u32(&in);
    counts->gone = wire_get_u32(&in);
    counts->released = wire_get_u32(&in);
    wire_get_str(&in, where, STOPPED_WHERE_SIZE);
    log_mask(where);
    return !in.bad && (uint64_t)counts->stopped + counts->gone + counts->released <= most;
}

/* ---- the head: the sums ---- */

static void put_in(struct stops *stops, uint32_t node, const struct counts *counts)
{
    struct of_node *of = &stops->of_node[node];
    stops->sum.stopped += counts->stopped - of->counts.stopped;
    stops->sum.gone += counts->gone - of->counts.gone;
    stops->sum.released += counts->released - of->counts.released;
    of->counts = *counts;
    stops->awaited -= !of->heard && stops->awaited > 0;
    of->heard = true;
}

/* Of a server that is gone: all its tasks have ended. */
static void put_gone(struct server *server, uint32_t node)
{
    struct stops *stops = server->stops;
    struct counts counts = {.released = stops->of_node[node].counts.released};
    counts.gone = server->boot.nodes[node].ntasks - counts.released;
    put_in(stops, node, &counts);
}

static void need_nodes(struct server *server)
{
    struct stops *stops = server->stops;
    if (stops->of_node != NULL)
        return;
    stops->of_node = calloc(server->boot.nnodes, sizeof *stops->of_node);
    for (uint32_t node = 0; node < server->boot.nnodes; node++)
        if (!view_has(server->view, node))
            put_gone(server, node);
}

/* Says the sums to all others, where it is worth it. */
static void say(struct server *server)
{
    const struct stopped *stopped = &server->stopped;
    struct stops *stops = server->stops;
    const struct counts sum = stops->sum;
    bool ready = is_ready(server, &sum);
    bool worth = sum.stopped == stopped->n ? ready != stopped->ready
                                           : sum.stopped < stopped->n || stopped->n == 0 || ready;
    if (stops->head != server->boot.node || stops->awaited > 0 || !worth)
        return;
    struct wire_out word = {0};
    put(&word, &sum, stops->where);
    server_say(server, &word);
    set(server, &sum);
}

static void tell(struct server *server);

static void add(struct server *server, uint32_t node, const struct counts *counts)
{
    need_nodes(server);
    put_in(server->stops, node, counts);
    say(server);
    if (node != server->boot.node)
        tell(server); /* who of this node is gone is worth it now */
}

void stopped_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    char where[STOPPED_WHERE_SIZE];
    struct counts counts;
    if (!get(body, len, server->boot.nodes[from].ntasks, &counts, where))
        return;
    note_where(server, where);
    add(server, from, &counts);
}

void stopped_said(struct server *server, uint32_t from, const void *body, size_t len)
{
    char where[STOPPED_WHERE_SIZE];
    struct counts sum;
    (void)from;
    if (!get(body, len, server->boot.ntasks, &sum, where))
        return;
    note_where(server, where);
    set(server, &sum);
    tell(server);
}

void stopped_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    struct server *server = arg;
    struct stops *stops = server->stops;
    const struct waiter waiter = {from, id};
    (void)body, (void)len;
    if (server->stopped.ready) {
        answer(server, &waiter);
        return;
    }
    if (stops->nwaiters < WAITERS_MAX)
        stops->waiters[stops->nwaiters++] = waiter;
    else
        asks_reply(server->asks, from, id, PMIX_ERR_OUT_OF_RESOURCE, NULL, 0);
}

/* ---- this node ---- */

static struct counts count(const struct server *server)
{
    struct counts n = {0};
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++) {
        const struct task *task = &server->tasks[k];
        if (task->debug == DEBUG_RELEASED)
            n.released++;
        else if (task_has_ended(task))
            n.gone++;
        else
            n.stopped += task->debug == DEBUG_STOPPED;
    }
    return n;
}

/* Whether the head is to know them: fewer are stopped than it knows, or the first, or none is
 * awaited any more. Of a step without a debugger it need not know who is gone. */
static bool are_worth(const struct server *server, const struct counts *n)
{
    const struct counts *told = &server->stops->told;
    bool waits =
        n->stopped > 0 || server->stopped.n > 0 || server->stopped.stop.where != STOP_NOWHERE;
    bool all = n->stopped + n->gone + n->released == boot_here(&server->boot)->ntasks;
    return n->stopped < told->stopped || (n->stopped > 0 && told->stopped == 0) ||
           (waits && all && (n->stopped != told->stopped || n->gone != told->gone));
}

static void tell_all(struct server *server, const struct counts *n)
{
    struct stops *stops = server->stops;
    stops->told = *n;
    if (stops->head == server->boot.node) {
        add(server, server->boot.node, n);
        return;
    }
    struct wire_out frame = {0};
    put(&frame, n, stops->where);
    link_send(server->link, stops->head, &frame);
}

/* Tells the head, where it is worth it. */
static void tell(struct server *server)
{
    const struct counts n = count(server);
    if (are_worth(server, &n))
        tell_all(server, &n);
}

void stopped_ready(struct server *server, uint32_t rank, const char *where)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if ((rank == STOP_ALL || here->ranks[k] == rank) && !task_has_ended(&server->tasks[k])) {
            log_debug("rank %u waits for a debugger, at %s", here->ranks[k], where);
            server->tasks[k].debug = DEBUG_STOPPED;
            note_where(server, where);
        }
    tell(server);
}

void stopped_release(struct server *server, uint32_t first, uint32_t last)
{
    const struct boot_node *here = boot_here(&server->boot);
    bool on_exec = server->stopped.stop.where == STOP_ON_EXEC;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        if (here->ranks[k] < first || here->ranks[k] > last)
            continue;
        if (server->tasks[k].debug != DEBUG_STOPPED)
            continue;
        if (on_exec)
            signals_continue(server, k);
        server->tasks[k].debug = DEBUG_RELEASED;
    }
    tell(server);
}

void stopped_runs(struct server *server, uint32_t rank)
{
    const struct boot_node *here = boot_here(&server->boot);
    if (server->stopped.stop.where != STOP_ON_EXEC)
        return;
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (here->ranks[k] == rank && server->tasks[k].debug == DEBUG_STOPPED)
            server->tasks[k].debug = DEBUG_RELEASED;
    tell(server);
}

void stopped_signalled(struct server *server)
{
    tell(server);
}

void stopped_task_ended(struct server *server, uint32_t slot)
{
    if (slot < boot_here(&server->boot)->ntasks)
        tell(server);
}

/* ---- another view ---- */

static void put_all_gone(struct server *server, const struct ranges *nodes)
{
    for (struct ranges_at at = {0}; ranges_next(nodes, &at);)
        put_gone(server, at.number);
}

/* What the head before had heard is lost with it. All have heard the same sums, so where a process
 * waits all tell the new head what they have, and before it has that it says nothing. */
static void begin(struct server *server)
{
    struct stops *stops = server->stops;
    need_nodes(server);
    stops->awaited = 0;
    for (uint32_t node = 0; server->stopped.n > 0 && node < server->boot.nnodes; node++)
        stops->awaited += !stops->of_node[node].heard;
}

void stopped_view_changed(struct server *server, const struct ranges *lost,
                          const struct ranges *left)
{
    struct stops *stops = server->stops;
    const struct counts n = count(server);
    uint32_t head = view_head(server->view);
    bool news = head != stops->head;
    stops->head = head;
    if (stops->of_node != NULL) {
        put_all_gone(server, lost);
        put_all_gone(server, left);
    }
    if (news) {
        stops->told = (struct counts){0};
        if (head == server->boot.node)
            begin(server);
    }
    if (news && server->stopped.n > 0)
        tell_all(server, &n);
    else
        tell(server);
    if (stops->of_node != NULL)
        say(server);
}

/* ---- life ---- */

int stopped_open(struct server *server, struct err *err)
{
    struct stop *stop = &server->stopped.stop;
    server->stops = calloc(1, sizeof *server->stops);
    int rc = stop_read(stop, &server->boot, err) != 0 || stop_judge(stop, server->library, err) != 0
                 ? -1
                 : 0;
    err->alike |= rc != 0; /* all nodes get the same from the user */
    return rc;
}

void stopped_close(struct server *server)
{
    if (server->stops == NULL)
        return;
    timer_stop(&server->stops->report);
    free(server->stops->of_node);
    free(server->stops);
    server->stops = NULL;
}
