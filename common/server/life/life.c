/* SPDX-License-Identifier: BSD-3-Clause */
/* One muster-server: how it is put together, its loop, and its end. */
#include "common/server/life/life.h"

#include "common/holder/holder.h"
#include "common/notify/debug.h"
#include "common/nspace/foreign.h"
#include "common/nspace/topology.h"
#include "common/server/life/control.h"
#include "common/server/life/core.h"
#include "common/server/life/frames.h"
#include "common/server/peers/agreed.h"
#include "common/server/peers/departed.h"
#include "common/server/spawned/execs.h"
#include "common/server/status/status.h"
#include "common/server/status/stopped.h"
#include "common/server/steps/sets.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/alone.h"
#include "common/server/tasks/stranded.h"
#include "common/server/totals.h"
#include "common/server/trace.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/forward.h"
#include "common/upcall/printer.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"

#include <event2/buffer.h>
#include <stdlib.h>

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)fd, (void)what;
    timers_run(&server->timers);
}

int server_open(struct server *server, struct err *err)
{
    if (server_load(server, err) != 0 || core_open(server, err) != 0)
        return -1;
    server->base = event_base_new();
    server->control_in = evbuffer_new();
    if (server->base == NULL || server->control_in == NULL ||
        event_base_priority_init(server->base, 2) != 0)
        return err_set(err, "libevent does not start");
    server->handoff = handoff_new(server->base);
    server->control =
        event_new(server->base, BOOT_FD_CONTROL, EV_READ | EV_PERSIST, control_ready, server);
    server->timer = evtimer_new(server->base, on_timer, server);
    if (server->handoff == NULL || server->control == NULL || server->timer == NULL)
        return err_set(err, "libevent does not start");
    event_priority_set(server->timer, 0); /* what is due comes before what has come since */
    if (frames_open(server, err) != 0)
        return -1;
    server->started = now_ms();
    server->status = status_open(server);
    return execs_open(server, err);
}

void server_run(struct server *server)
{
    evutil_make_socket_nonblocking(BOOT_FD_CONTROL);
    event_add(server->control, NULL);
    while (!event_base_got_break(server->base) && server_turn(server, -1))
        ;
}

void server_close(struct server *server)
{
    status_close(server->status);
    server_close_backend(server, 0);
    if (server->handoff != NULL)
        handoff_run(server->handoff);
    upcall_close_credentials(server);
    handoff_free(server->handoff);
    ranges_free(&server->in_order);
    agreed_close(server);
    stranded_free(server);
    alone_free(server);
    upcall_free_served(server);
    checkpoints_free(server);
    upcall_free_control(server);
    upcall_free_kept(server);
    printer_close(server);
    forwards_free(server);
    pushes_free(server);
    upcall_free_spawns(server);
    upcall_free_allocations(server);
    debug_close(server);
    stopped_close(server);
    trace_close(server);
    totals_close(server);
    engine_free(server->engine);
    asks_free(server->asks);
    holder_free(server->holder);
    steps_close(server);
    sets_close(server);
    book_free(&server->book);
    link_free(server->link);
    registry_free(server->registry);
    nspaces_free(server->nspace);
    topology_free(server->topology);
    free(server->tasks);
    free(server->uri);
    procset_free(&server->paused);
    if (server->control != NULL)
        event_free(server->control);
    if (server->timer != NULL)
        event_free(server->timer);
    if (server->control_in != NULL)
        evbuffer_free(server->control_in);
    if (server->base != NULL)
        event_base_free(server->base);
    boot_free(&server->boot);
}
