/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's messages: tasks that have started or ended, and that the server is to leave. */
#include "common/server/life/control.h"

#include "common/notify/connection.h"
#include "common/nspace/binding.h"
#include "common/nspace/command.h"
#include "common/nspace/topology.h"
#include "common/server/spawned/execs.h"
#include "common/server/status/shown.h"
#include "common/server/status/stopped.h"
#include "common/server/steps/meeting.h"
#include "common/server/tasks/alone.h"
#include "common/server/tasks/signals.h"
#include "common/server/tasks/tasks.h"
#include "common/upcall/checkpoint.h"
#include "common/upcall/forward.h"
#include "common/upcall/push.h"
#include "common/upcall/upcall.h"
#include "common/util/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <string.h>

/* The launcher may hold tasks until libpmix knows where all of the node are bound. A launcher that
 * has told that of other processes tells of the tasks themselves later. */
static void task_started(struct server *server, uint32_t slot, pid_t pid, bool own)
{
    uint32_t ntasks = boot_here(&server->boot)->ntasks;
    if (own && slot < ntasks) {
        server->tasks[slot].pid = pid;
        signals_task_started(server, slot);
    }
    if (server->ntold >= ntasks)
        return;
    binding_learn(server->nspace, slot, pid);
    if (++server->ntold != ntasks)
        return;
    binding_complete(server->nspace);
    topology_share(server->topology, &server->boot, pid);
    alone_watch(server);
    if (!server_tell_launcher(BOOT_SAYS_BOUND))
        log_warning("the launcher cannot be told that tasks may go on: %s", strerror(errno));
}

void control_task_gone(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    const struct boot_node *here = boot_here(&server->boot);
    tasks_ended(server, slot, sig, code);
    if (slot >= here->ntasks)
        return;
    alone_ended(server, &server->tasks[slot]);
    upcall_client_ended(server, slot);
    upcall_task_gone(server, here->ranks[slot]);
    checkpoint_task_gone(server, here->ranks[slot]);
    forwards_parent_gone(server, server->boot.nspace, here->ranks[slot]);
    pushes_parent_gone(server, server->boot.nspace, here->ranks[slot]);
    connection_task_ended(server, slot);
    stopped_task_ended(server, slot);
    signals_task_ended(server, slot);
    holder_ended(server->holder, server->boot.nspace, here->ranks[slot]);
}

static void task_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    handoff_run(server->handoff); /* it may have finalized just before */
    execs_ended(server, slot, sig, code);
    control_task_gone(server, slot, sig, code);
}

/* @param record of boot.h @param text that belongs to it */
static void take_record(struct server *server, const uint32_t *record, const char *text)
{
    uint32_t slot = record[0];
    if (slot == BOOT_LEAVE)
        server->told_to_leave = true;
    else if (slot == BOOT_WDIR)
        command_wdir(server->nspace, text);
    else if (slot == BOOT_SHOWN)
        shown_take(server, record[1]);
    else if (slot == BOOT_ASKS)
        server_tell_launcher(BOOT_SAYS_HERE); /* one that takes no answer does not need it */
    else if (slot & BOOT_TASK_STARTED)
        task_started(server, slot & ~(uint32_t)BOOT_TASK_STARTED, (pid_t)record[1],
                     record[2] == BOOT_PID_OWN);
    else
        task_ended(server, slot, record[1], record[2]);
}

/* @return whether the launcher's next message is there as a whole; it is done then */
static bool next_record(struct server *server)
{
    unsigned char head[12];
    uint32_t record[3];
    char text[BOOT_WDIR_MAX + 1];
    struct wire_in in;
    if (evbuffer_copyout(server->control_in, head, sizeof head) < (ev_ssize_t)sizeof head)
        return false;
    wire_in_init(&in, head, sizeof head);
    for (int i = 0; i < 3; i++)
        record[i] = wire_get_u32(&in);
    size_t len = record[0] == BOOT_WDIR ? record[1] : 0;
    if (len > BOOT_WDIR_MAX) { /* it is of our own build */
        log_error("the launcher tells of a working directory of %zu bytes: leaving", len);
        event_base_loopbreak(server->base);
        return false;
    }
    if (evbuffer_get_length(server->control_in) < sizeof head + len)
        return false;
    evbuffer_drain(server->control_in, sizeof head);
    evbuffer_remove(server->control_in, text, len);
    text[len] = '\0';
    take_record(server, record, text);
    return true;
}

void control_ready(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)what;
    int n = evbuffer_read(server->control_in, fd, -1);
    while (next_record(server))
        ;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        log_debug("the launcher has shut the control socket: leaving");
        event_base_loopbreak(server->base);
    }
}
