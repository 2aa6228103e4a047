/** @file
 * The loop of srun's process: what nodes, the slurmds, the clock and the user tell.
 */
#include "common/util/clock.h"
#include "shims/slurm/standin/procs.h"
#include "shims/slurm/standin/srun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_WAIT_MS = 5000, /* between SIGTERM and SIGKILL */
    DRAIN_MS = 1000,     /* for outputs that somebody still holds when all nodes are gone */
    LEFT_MS = 2000,      /* for what a killed node leaves to be gone */
    SIGNAL_BASE = 128,
};

static void signal_tasks(struct srun *srun, int32_t sig)
{
    for (uint32_t n = 0; n < srun->run->step.nnodes; n++)
        if (srun->nodes[n].control >= 0 &&
            send(srun->nodes[n].control, &sig, sizeof(sig), MSG_NOSIGNAL) < 0)
            slurm_abi_debug("%s is gone", srun->run->step.nodes[n].name);
    if (sig == SIGKILL || sig == SIGTERM || sig == SIGINT)
        srun->killing = true;
}

void srun_kill_tasks(struct srun *srun)
{
    srun->kill_at = 0;
    signal_tasks(srun, SIGKILL);
}

static void add_status(struct srun *srun, int status)
{
    if (status > srun->status)
        srun->status = status;
}

static void kill_later(struct srun *srun, int64_t ms)
{
    int64_t when = now_ms() + ms;

    if (srun->kill_at == 0 || when < srun->kill_at)
        srun->kill_at = when;
}

/* ---- what nodes tell ---- */

static void task_ended(struct srun *srun, uint32_t rank, int status)
{
    bool killed = WIFSIGNALED(status);
    int code = killed ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);

    add_status(srun, code);
    if (++srun->ended == srun->run->step.ntasks)
        slurmd_ended(srun->run->slurmd);
    if (code == 0 || srun->killing)
        return;
    if (killed)
        slurm_abi_error("task %u: %s", rank, strsignal(WTERMSIG(status)));
    else
        slurm_abi_error("task %u: Exited with exit code %d", rank, code);
    if (srun->run->kill_on_bad_exit)
        srun_kill_tasks(srun);
}

static void node_gone(struct srun *srun, uint32_t n)
{
    struct node *node = &srun->nodes[n];
    int64_t notice = 0;

    close(node->control);
    node->control = -1;
    srun->live--;
    if (node->done)
        return;
    for (unsigned i = 0; i < srun->run->faults.n; i++) {
        const struct fault *fault = &srun->run->faults.list[i];

        if (fault->kind == FAULT_DIE && fault->count > 0 && fault->notice > notice)
            notice = fault->notice;
    }
    slurm_abi_error("Node failure on %s", srun->run->step.nodes[n].name);
    add_status(srun, SIGNAL_BASE + SIGKILL);
    kill_later(srun, notice);
}

static void control_ready(struct srun *srun, uint32_t n)
{
    struct report report;
    ssize_t len = recv(srun->nodes[n].control, &report, sizeof(report), MSG_DONTWAIT);

    /* Reset: it left without having read a signal; what it said before still comes. */
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
        return;
    if (len != sizeof(report)) {
        node_gone(srun, n);
        return;
    }
    switch (report.what) {
    case REPORT_ENDED:
        task_ended(srun, report.rank, report.status);
        return;
    case REPORT_FAILED: /* it has said why */
        add_status(srun, 1);
        srun_kill_tasks(srun);
        srun->nodes[n].done = true;
        return;
    case REPORT_DONE:
        srun->nodes[n].done = true;
        return;
    }
}

/* ---- what the slurmds, the clock and the user tell ---- */

static void die(struct srun *srun, unsigned i)
{
    struct fault *fault = &srun->run->faults.list[i];
    uint32_t n = fault->node < 0 ? 0 : (uint32_t)fault->node;

    srun->die_at[i] = 0;
    if (fault->count > 0 || n >= srun->run->step.nnodes || srun->nodes[n].control < 0)
        return;
    fault->count = 1;
    slurm_abi_info("fault: %s dies", srun->run->step.nodes[n].name);
    procs_kill_tree(srun->nodes[n].pid);
}

static void events_ready(struct srun *srun)
{
    struct slurmd_event event;

    while (read(srun->events[0], &event, sizeof(event)) == sizeof(event)) {
        if (event.what == SLURMD_DIE) {
            die(srun, (unsigned)event.value);
        } else {
            slurm_abi_info("the step is signalled: %d", (int)event.value);
            signal_tasks(srun, event.value);
        }
    }
}

static void on_signal(struct srun *srun, int sig)
{
    if (sig == SIGCHLD) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ; /* nodes say themselves how it went; others are what their tasks have left */
        return;
    }
    if (sig == SIGINT && srun->interrupted) {
        srun_kill_tasks(srun);
        return;
    }
    if (sig == SIGINT)
        slurm_abi_error("interrupt (once more: the tasks are killed)");
    srun->interrupted |= sig == SIGINT;
    signal_tasks(srun, sig);
    if (sig == SIGTERM || sig == SIGHUP)
        kill_later(srun, KILL_WAIT_MS);
}

static void signals_ready(struct srun *srun)
{
    struct signalfd_siginfo info;

    while (read(srun->signals, &info, sizeof(info)) == sizeof(info))
        on_signal(srun, (int)info.ssi_signo);
}

static int next_deadline(const struct srun *srun)
{
    int64_t first = srun->kill_at;

    for (unsigned i = 0; i < srun->run->faults.n; i++)
        if (srun->die_at[i] != 0 && (first == 0 || srun->die_at[i] < first))
            first = srun->die_at[i];
    return first == 0 ? -1 : deadline_left(first);
}

static void check_deadlines(struct srun *srun)
{
    int64_t now = now_ms();

    for (unsigned i = 0; i < srun->run->faults.n; i++)
        if (srun->die_at[i] != 0 && srun->die_at[i] <= now)
            die(srun, i);
    if (srun->kill_at != 0 && srun->kill_at <= now)
        srun_kill_tasks(srun);
}

/* ---- the loop ---- */

static void serve_once(struct srun *srun, int timeout)
{
    uint32_t nnodes = srun->run->step.nnodes;
    struct pollfd *fds = srun->fds;
    nfds_t n = 0, nio;

    fds[n++] = (struct pollfd){srun->signals, POLLIN, 0};
    fds[n++] = (struct pollfd){srun->events[0], POLLIN, 0};
    for (uint32_t i = 0; i < nnodes; i++)
        fds[n++] = (struct pollfd){srun->nodes[i].control, POLLIN, 0};
    nio = io_poll(srun->run->io, fds + n);
    if (poll(fds, n + nio, timeout) < 0)
        return;
    io_ready(srun->run->io, fds + n, nio);
    if (fds[0].revents)
        signals_ready(srun);
    if (fds[1].revents)
        events_ready(srun);
    for (uint32_t i = 0; i < nnodes; i++)
        if (fds[2 + i].revents)
            control_ready(srun, i);
    check_deadlines(srun);
}

void srun_serve(struct srun *srun)
{
    int64_t drained;

    while (srun->live > 0)
        serve_once(srun, next_deadline(srun));
    slurmd_ended(srun->run->slurmd);
    /* What killed nodes left is ours now, and may hold outputs. */
    procs_kill_children(NULL, 0, LEFT_MS);
    drained = now_ms() + DRAIN_MS;
    while (!io_done(srun->run->io) && deadline_left(drained) > 0)
        serve_once(srun, deadline_left(drained));
    io_finish(srun->run->io);
}
