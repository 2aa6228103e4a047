/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that wait for a debugger: counted here, and over the step. */
#include "common/server/status/stopped.h"

#include "common/server/status/stalled.h"
#include "common/server/tasks/signals.h"
#include "common/util/log.h"

#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITERS_MAX = 64 /* a step has one spawner; who asks for more is wrong */ };

/* A server that waits until all are ready. */
struct waiter {
    uint32_t from;
    uint64_t id;
};

struct stops {
    uint32_t told;     /* how many of this node, as the first server knows it */
    uint32_t *of_node; /* at the first server: how many of each node; NULL: none has told */
    uint32_t sum;      /* of these */
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
    if (stopped->n > 0 && server_first(server) == server->boot.node)
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

static void set(struct server *server, uint32_t n, const char *where)
{
    struct stopped *stopped = &server->stopped;
    struct stops *stops = server->stops;
    bool was_ready = stopped->ready;
    if (stopped->n == 0 && n > 0 && server->conf.stall_report > 0) {
        timer_init(&stops->report, &server->timers, on_report, server);
        timer_after(&stops->report, server->conf.stall_report * 1000ll);
    }
    if (n == 0)
        timer_stop(&stops->report);
    stopped->n = n;
    stopped->ready = n >= stopped_wanted(server);
    if (n == 0)
        stopped->where[0] = '\0';
    else if (where !=
             stopped->where) /* some are released, or gone: the others wait where they did */
        snprintf(stopped->where, sizeof stopped->where, "%s", where);
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

static void get(const void *body, size_t len, struct wire_in *in, uint32_t *n, char *where)
{
    wire_in_init(in, body, len);
    *n = wire_get_u32(in);
    wire_get_str(in, where, STOPPED_WHERE_SIZE);
    log_mask(where);
}

void stopped_said(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    char where[STOPPED_WHERE_SIZE];
    uint32_t n;
    (void)from;
    get(body, len, &in, &n, where);
    if (!in.bad && n <= server->boot.ntasks)
        set(server, n, where);
}

/* ---- the first server: the sum ---- */

static void put(struct wire_out *frame, uint32_t n, const char *where)
{
    wire_put_u8(frame, FRAME_STOPPED);
    wire_put_u32(frame, n);
    wire_put_str(frame, where);
}

static void add(struct server *server, uint32_t node, uint32_t n, const char *where)
{
    struct stops *stops = server->stops;
    if (stops->of_node == NULL)
        stops->of_node = calloc(server->boot.nnodes, sizeof *stops->of_node);
    uint32_t was = stops->sum;
    stops->sum += n - stops->of_node[node];
    stops->of_node[node] = n;
    if (stops->sum == was || (was > 0 && stops->sum > was && stops->sum < stopped_wanted(server)))
        return;
    struct wire_out word = {0};
    put(&word, stops->sum, where);
    server_say(server, &word);
    set(server, stops->sum, where);
}

void stopped_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct wire_in in;
    char where[STOPPED_WHERE_SIZE];
    uint32_t n;
    get(body, len, &in, &n, where);
    if (!in.bad && n <= server->boot.nodes[from].ntasks)
        add(server, from, n, where);
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

static uint32_t count(const struct server *server)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < boot_here(&server->boot)->ntasks; k++)
        n += server->tasks[k].stopped && !task_has_ended(&server->tasks[k]);
    return n;
}

/* Tells the first server, where it is worth it. */
static void tell(struct server *server, const char *where)
{
    struct stops *stops = server->stops;
    uint32_t n = count(server), all = boot_here(&server->boot)->ntasks;
    if (n == stops->told || (n > stops->told && stops->told > 0 && n < all))
        return;
    stops->told = n;
    uint32_t first = server_first(server);
    if (first == server->boot.node) {
        add(server, first, n, where);
        return;
    }
    struct wire_out frame = {0};
    put(&frame, n, where);
    link_send(server->link, first, &frame);
}

void stopped_ready(struct server *server, uint32_t rank, const char *where)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if ((rank == STOP_ALL || here->ranks[k] == rank) && !task_has_ended(&server->tasks[k])) {
            log_debug("rank %u waits for a debugger, at %s", here->ranks[k], where);
            server->tasks[k].stopped = true;
        }
    tell(server, where);
}

void stopped_release(struct server *server, uint32_t first, uint32_t last)
{
    const struct boot_node *here = boot_here(&server->boot);
    bool on_exec = server->stopped.stop.where == STOP_ON_EXEC;
    for (uint32_t k = 0; k < here->ntasks; k++) {
        if (here->ranks[k] < first || here->ranks[k] > last)
            continue;
        if (on_exec && server->tasks[k].stopped)
            signals_continue(server, k);
        server->tasks[k].stopped = false;
    }
    tell(server, server->stopped.where);
}

void stopped_runs(struct server *server, uint32_t rank)
{
    const struct boot_node *here = boot_here(&server->boot);
    if (server->stopped.stop.where != STOP_ON_EXEC)
        return;
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (here->ranks[k] == rank)
            server->tasks[k].stopped = false;
    tell(server, server->stopped.where);
}

void stopped_signalled(struct server *server)
{
    tell(server, server->stopped.where);
}

void stopped_task_ended(struct server *server, uint32_t slot)
{
    if (slot < boot_here(&server->boot)->ntasks && server->tasks[slot].stopped)
        tell(server, server->stopped.where);
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
