/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of this server. */
#include "common/server/life/life.h"

#include "common/holder/holder.h"
#include "common/server/ending.h"
#include "common/server/job_now.h"
#include "common/server/peers/agreed.h"
#include "common/server/spawned/execs.h"
#include "common/server/spawned/streams.h"
#include "common/server/status/shown.h"
#include "common/server/status/status.h"
#include "common/server/steps/steps.h"
#include "common/server/tasks/tasks.h"
#include "common/server/totals.h"
#include "common/server/trace.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/view/view.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

enum { TELL_MAX = 512 };
enum {
    LOOK_MAX_MS = 50,      /* between looks whether all is delivered */
    TAKEN_MS = 2000,       /* for what the parts have said at their end to be taken */
    DIRECT_MS = 500,       /* for direct connections to end in order */
    SHUT_MS = 500,         /* for what is at our socket already */
    SHUT_LOOK_MS = 2,      /* between looks whether it has been read */
    SHOULD_STAY_MS = 1500, /* for events and questions, on which no result of others hangs */
};

static void close_direct(struct server *server, unsigned ms)
{
    direct_close(server->direct, ms < DIRECT_MS ? ms : DIRECT_MS);
    server->direct = NULL;
}

void server_close_backend(struct server *server, unsigned ms)
{
    close_direct(server, ms);
    if (server->rm != NULL)
        server->rm_ops->close(server->rm, ms);
    server->rm = NULL;
}

/* Frames that no server has taken yet, without frames for servers that are gone, and without frames
 * that are not worth to stay for
 * @p stayed ms; a line for each server that they are for, if asked. */
static bool undelivered(const struct server *server, int64_t stayed, bool tell)
{
    uint32_t handles = server->rm == NULL ? 0 : nspace_handles(server->nspace);
    bool found = false;
    for (uint32_t node = 0; node < handles && (tell || !found); node++) {
        struct link_owed owed = link_owed(server->link, node);
        bool out = node < server->boot.nnodes && !view_has(server->view, node);
        if (out || engine_is_lost(server->engine, node))
            continue;
        found = found || owed.must > 0 || (owed.should > 0 && stayed < SHOULD_STAY_MS);
        if (tell && owed.must + owed.should > 0)
            log_write(owed.must > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                      "transport: %u messages for %s are given up: it was not reached in time",
                      owed.must + owed.should, nspace_name(server->nspace, node));
    }
    return found;
}

/* @return whether the server has a reason to stay. A server whose tasks were all killed stays only
 * to hear why a spawned task was killed. */
static bool has_reason(struct server *server, bool in_order, int64_t stayed)
{
    link_hurry(server->link);
    return execs_await_why(server) || tasks_await_rm(server) ||
           (in_order && (tasks_await_cause(server) || holder_hands_over(server->holder) ||
                         execs_owe(server) || streams_print(server, true) ||
                         (stayed < SHOULD_STAY_MS && streams_print(server, false)) ||
                         pushes_wait(server, false) || undelivered(server, stayed, false)));
}

/* What succeeded here must do so elsewhere: a node that is away for a while has all the time that
 * it has while the step runs. The server goes on as ever, without tasks. */
static void deliver_rest(struct server *server, bool in_order)
{
    int64_t begin = now_ms(), now = begin, said = begin;
    int64_t stay = (int64_t)server->conf.timeouts.peer * 1000;
    direct_hurry(server->direct);
    if (stay > BOOT_STAY_MAX_MS)
        stay = BOOT_STAY_MAX_MS;
    while (!server->ending && now < begin + stay && has_reason(server, in_order, now - begin)) {
        /* The back end does not say when it has sent something. */
        int64_t ms = (now - begin) / 16 + 2;
        if (!server_turn(server, ms < LOOK_MAX_MS ? ms : LOOK_MAX_MS))
            break;
        now = now_ms();
        if (now >= said + BOOT_STAY_MS) {
            if (said == begin)
                log_info("stays, for there is something to deliver, or a cause to hear");
            said = now;
            server_tell_launcher(BOOT_SAYS_STAYS); /* one that is gone need not be told */
        }
    }
    if (!server->ending && in_order) {
        undelivered(server, now - begin, true);
        pushes_wait(server, true);
    }
}

/* What this server has said last is to be taken before the others go on without it. */
static void await_taken(struct server *server)
{
    int64_t until = now_ms() + TAKEN_MS;
    for (link_hurry(server->link); undelivered(server, SHOULD_STAY_MS, false) && now_ms() < until;
         link_hurry(server->link))
        if (!server_turn(server, LOOK_MAX_MS))
            break;
}

/* Servers of other steps that still send to us are to see that we have left, and not died. */
static void shut(struct server *server)
{
    int64_t until = now_ms() + SHUT_MS;
    close_direct(server, DIRECT_MS);
    if (server->rm == NULL || server->rm_ops->shut == NULL)
        return;
    while (server->rm_ops->shut(server->rm) && now_ms() < until)
        if (!server_turn(server, SHUT_LOOK_MS))
            break;
}

void server_leave(struct server *server, unsigned ms)
{
    bool in_order = server->told_to_leave && !tasks_all_killed(server);
    if (!in_order || !tasks_await_cause(server))
        tasks_hurry(server); /* a loss that was about to be told */
    if (server->control != NULL)
        event_del(server->control);
    if (in_order)
        holder_leave(server->holder);
    deliver_rest(server, in_order);
    tasks_tell_rest(server); /* one whose cause was awaited */
    if (server->told_to_leave && server->ending)
        server_tell_launcher(BOOT_SAYS_STAYS); /* until the step's end is asked for */
    if (!server->told_to_leave && !server->ending) {
        char tell[TELL_MAX];
        snprintf(tell, sizeof tell,
                 "the %s of %s %.100s on node %.250s was killed, and the tasks there with it; "
                 "ending the %s",
                 boot_launcher(&server->boot), log_unit(), server->boot.label,
                 boot_here(&server->boot)->name, log_unit());
        struct rm_ending ending = ending_of_host(tell);
        server_end_step(server, &ending, ENDING_ALL_TELL);
    }
    bool going_on = server->told_to_leave && !server->ending;
    server->ending = true;
    server_resume(server);
    server->leaving = true;
    engine_close(server->engine);
    holder_close(server->holder);
    view_mute(server->view);
    asks_close(server->asks);
    job_now_close(server);
    upcall_answer_spawns(server);
    upcall_answer_allocations(server);
    shown_take(server, UINT32_MAX);
    steps_go_on(server);
    trace_write(server);
    if (going_on)
        await_taken(server);
    bool last = going_on && agreed_leave(server);
    if (last)
        totals_show(server);
    if (going_on && in_order && tasks_one_ended_well(server) && server->rm != NULL &&
        server->rm_ops->let_go != NULL)
        server->rm_ops->let_go(server->rm);
    steps_leave(server);
    execs_close(server);
    status_close(server->status);
    server->status = NULL;
    /* Before the back end is closed, which may end the process when its RM hangs. */
    if (server->told_to_leave)
        server_tell_launcher(BOOT_SAYS_LEFT);
    if (going_on)
        shut(server);
    if (last || !going_on)
        steps_end(server, last);
    server_close_backend(server, ms);
}
