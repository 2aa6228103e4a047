/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal goes to the task's own process, as its launcher has told of it: that number is no other
 * process's before the launcher has reaped it, and then tells of the end within milliseconds. */
#include "common/server/tasks/signals.h"

#include "common/util/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static void signal_one(const struct task *task, uint32_t rank, int sig)
{
    pid_t pid = task->pid;
    if (pid <= 0 && task->aborted)
        log_info("rank %u is killed when it starts", rank);
    else if (pid <= 0)
        log_info("signal %d does not reach rank %u, which has not started yet", sig, rank);
    else if (kill(pid, sig) != 0)
        log_warning("signal %d does not reach rank %u: %s", sig, rank, strerror(errno));
    else
        log_info("signal %d to rank %u", sig, rank);
}

void signals_here(struct server *server, const struct procset *set, int sig)
{
    const struct boot_node *here = boot_here(&server->boot);
    for (uint32_t k = 0; k < here->ntasks; k++)
        if (!task_has_ended(&server->tasks[k]) &&
            procset_has(set, server->boot.nspace, here->ranks[k])) {
            server->tasks[k].aborted |= sig == SIGKILL;
            signal_one(&server->tasks[k], here->ranks[k], sig);
            if (sig == SIGCONT && server->stopped.stop.where == STOP_ON_EXEC &&
                server->tasks[k].debug == DEBUG_STOPPED)
                server->tasks[k].debug = DEBUG_RELEASED;
        }
}

void signals_continue(struct server *server, uint32_t slot)
{
    if (!task_has_ended(&server->tasks[slot]))
        signal_one(&server->tasks[slot], boot_here(&server->boot)->ranks[slot], SIGCONT);
}

/* A process that is stopped is not late. All servers note it, in one order. */
static void note(struct server *server, const struct procset *set, int sig)
{
    struct procset left = {0};
    if (sig == SIGSTOP) {
        procset_unite(&server->paused, set);
    } else if (sig == SIGCONT) {
        procset_except(&left, &server->paused, set);
        procset_free(&server->paused);
        server->paused = left;
    }
    server_stand_still(server);
}

void signals_task_started(struct server *server, uint32_t slot)
{
    uint32_t rank = boot_here(&server->boot)->ranks[slot];
    const struct task *task = &server->tasks[slot];
    if (task->aborted && !task_has_ended(task))
        signal_one(task, rank, SIGKILL);
    else if (procset_has(&server->paused, server->boot.nspace, rank))
        signal_one(task, rank, SIGSTOP);
}

void signals_task_ended(struct server *server, uint32_t slot)
{
    uint32_t rank = boot_here(&server->boot)->ranks[slot];
    struct procset one = {0};
    if (server->leaving || !procset_has(&server->paused, server->boot.nspace, rank))
        return;
    procset_add(&one, server->boot.nspace, rank, rank);
    procset_canonical(&one);
    signals_send(server, &one, SIGCONT);
    procset_free(&one);
}

void signals_server_lost(struct server *server, uint32_t node)
{
    const struct boot_node *there = node < server->boot.nnodes ? &server->boot.nodes[node] : NULL;
    struct procset set = {0};
    if (there == NULL || server->paused.nparts == 0)
        return;
    for (uint32_t k = 0; k < there->ntasks; k++)
        procset_add(&set, server->boot.nspace, there->ranks[k], there->ranks[k]);
    procset_canonical(&set);
    note(server, &set, SIGCONT);
    procset_free(&set);
}

void signals_send(struct server *server, const struct procset *set, int sig)
{
    struct wire_out frame = {0};
    if (sig == SIGKILL) /* here at once: one that has aborted itself may be about to exit */
        signals_here(server, set, sig);
    wire_put_u8(&frame, FRAME_SIGNAL);
    wire_put_u32(&frame, (uint32_t)sig);
    procset_write(set, &frame);
    server_say(server, &frame); /* which this server hears, too, in its turn */
}

void signals_receive(struct server *server, const void *body, size_t len)
{
    struct procset set = {0};
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint32_t sig = wire_get_u32(&in);
    procset_read(&set, &in);
    if (wire_end(&in) && sig > 0 && sig < NSIG) {
        signals_here(server, &set, (int)sig);
        note(server, &set, (int)sig);
        for (uint32_t k = 0; sig == SIGSTOP && k < boot_here(&server->boot)->ntasks; k++)
            if (task_has_ended(&server->tasks[k]))
                signals_task_ended(server, k); /* it is not paused */
    }
    procset_free(&set);
}
