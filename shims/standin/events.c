/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The loop of the first process: what nodes, carriers of messages, the clock and the user tell.
 */
#include "common/util/clock.h"
#include "shims/standin/launcher.h"
#include "shims/standin/procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_WAIT_MS = 5000, /* between SIGTERM and SIGKILL */
    DRAIN_MS = 1000,     /* for outputs that a process still holds when all nodes are gone */
    LEFT_MS = 2000,      /* for what a killed node leaves to be gone */
    ALIKE_MS = 1000,     /* for more tasks that end alike */
    SIGNAL_BASE = 128,
};

static void signal_tasks(struct launcher *launcher, int32_t sig)
{
    for (uint32_t n = 0; n < launcher->run->step.nnodes; n++)
        if (launcher->nodes[n].control >= 0 &&
            send(launcher->nodes[n].control, &sig, sizeof(sig), MSG_NOSIGNAL) < 0)
            say_debug("%s is gone", launcher->run->step.nodes[n].name);
    if (sig == SIGKILL || sig == SIGTERM || sig == SIGINT)
        launcher->killing = true;
}

void launcher_kill_tasks(struct launcher *launcher)
{
    launcher->kill_at = 0;
    signal_tasks(launcher, SIGKILL);
}

static void add_status(struct launcher *launcher, int status)
{
    if (status > launcher->status)
        launcher->status = status;
}

static void kill_later(struct launcher *launcher, int64_t ms)
{
    int64_t when = now_ms() + ms;
    if (launcher->kill_at == 0 || when < launcher->kill_at)
        launcher->kill_at = when;
}

/* ---- what nodes tell ---- */

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* "task 3", or "tasks 0-2,5" as far as there is room. */
static void name_tasks(struct alike *alike, char *text, size_t cap)
{
    size_t at = (size_t)snprintf(text, cap, alike->n == 1 ? "task " : "tasks ");
    uint32_t next;
    qsort(alike->ranks, alike->n, sizeof(*alike->ranks), by_number);
    for (uint32_t i = 0; i < alike->n; i = next) {
        const char *comma = i == 0 ? "" : ",";
        for (next = i + 1; next < alike->n && alike->ranks[next] == alike->ranks[next - 1] + 1;)
            next++;
        if (cap - at < 32) {
            snprintf(text + at, cap - at, ",...");
            return;
        }
        at += (size_t)snprintf(text + at, cap - at, next == i + 1 ? "%s%u" : "%s%u-%u", comma,
                               alike->ranks[i], alike->ranks[next - 1]);
    }
}

/* As srun, which has one line for many, too. */
static void tell_alike(struct launcher *launcher)
{
    struct alike *alike = &launcher->alike;
    char tasks[256];
    if (alike->n == 0)
        return;
    name_tasks(alike, tasks, sizeof(tasks));
    if (WIFSIGNALED(alike->status))
        say_error("%s: %s", tasks, strsignal(WTERMSIG(alike->status)));
    else
        say_error("%s: Exited with exit code %d", tasks, WEXITSTATUS(alike->status));
    alike->n = 0;
    alike->until = 0;
}

static void add_alike(struct launcher *launcher, uint32_t rank, int status)
{
    struct alike *alike = &launcher->alike;
    if (alike->n > 0 && alike->status != status)
        tell_alike(launcher);
    if (alike->n == 0)
        alike->until = now_ms() + ALIKE_MS;
    alike->status = status;
    alike->ranks[alike->n++] = rank;
}

static void task_ended(struct launcher *launcher, uint32_t rank, int status)
{
    bool killed = WIFSIGNALED(status);
    int code = killed ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    add_status(launcher, code);
    if (++launcher->ended == launcher->run->step.ntasks)
        launcher->run->rm->ended(launcher->run, false);
    if (code == 0 || launcher->killing)
        return;
    add_alike(launcher, rank, status);
    if (launcher->run->kill_on_bad_exit)
        launcher_kill_tasks(launcher);
}

static void node_gone(struct launcher *launcher, uint32_t n)
{
    struct launched *node = &launcher->nodes[n];
    const struct standin_node *here = &launcher->run->step.nodes[n];
    int64_t notice = 0;
    for (uint32_t slot = 0; slot < here->ntasks; slot++)
        io_lost(launcher->run->io, here->ranks[slot]);
    close(node->control);
    node->control = -1;
    launcher->live--;
    if (node->done)
        return;
    for (unsigned i = 0; i < launcher->run->faults->n; i++) {
        const struct fault *fault = &launcher->run->faults->list[i];
        if (fault->kind == FAULT_DIE && fault->count > 0 && fault->notice > notice)
            notice = fault->notice;
    }
    say_error("Node failure on %s", launcher->run->step.nodes[n].name);
    add_status(launcher, SIGNAL_BASE + SIGKILL);
    kill_later(launcher, notice);
}

/* A report, and the descriptors that come with it: all, or none. @return as recv(2) */
static ssize_t read_report(int control, struct report *report, int ends[IO_ENDS], size_t *n)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(IO_ENDS * sizeof(int))];
    } room;
    struct iovec bytes = {report, sizeof(*report)};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &room,
                             .msg_controllen = CMSG_LEN(IO_ENDS * sizeof(int))};
    ssize_t len = recvmsg(control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *n = 0;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        *n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ends, CMSG_DATA(head), *n * sizeof(int));
    }
    while (*n > 0 && (message.msg_flags & MSG_CTRUNC))
        close(ends[--*n]);
    return len;
}

/* A task without its pipes would end by SIGPIPE. */
static void task_started(struct launcher *launcher, uint32_t rank, const int *ends, size_t n)
{
    if (n >= 2) {
        io_take(launcher->run->io, rank, ends, n);
        return;
    }
    say_error("cannot take the pipes of task %u: %s; the tasks are killed", rank, strerror(EMFILE));
    io_lost(launcher->run->io, rank);
    add_status(launcher, 1);
    launcher_kill_tasks(launcher);
}

static void control_ready(struct launcher *launcher, uint32_t n)
{
    struct report report;
    int ends[IO_ENDS];
    size_t nends;
    ssize_t len = read_report(launcher->nodes[n].control, &report, ends, &nends);
    /* Reset: it left without having read a signal; what it said before still comes. */
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
        return;
    if (len != sizeof(report) || report.rank >= launcher->run->step.ntasks) {
        node_gone(launcher, n);
        return;
    }
    switch (report.what) {
    case REPORT_STARTED:
        task_started(launcher, report.rank, ends, nends);
        return;
    case REPORT_ENDED:
        io_lost(launcher->run->io, report.rank);
        task_ended(launcher, report.rank, report.status);
        return;
    case REPORT_FAILED: /* it has said why */
        add_status(launcher, 1);
        launcher_kill_tasks(launcher);
        launcher->nodes[n].done = true;
        return;
    case REPORT_DONE:
        launcher->nodes[n].done = true;
        return;
    }
}

/* ---- what carriers of messages, the clock and the user tell ---- */

static void die(struct launcher *launcher, unsigned i)
{
    struct fault *fault = &launcher->run->faults->list[i];
    uint32_t n = fault->node < 0 ? 0 : (uint32_t)fault->node;
    launcher->die_at[i] = 0;
    if (fault->count > 0 || n >= launcher->run->step.nnodes || launcher->nodes[n].control < 0)
        return;
    fault->count = 1;
    say_info("fault: %s dies", launcher->run->step.nodes[n].name);
    procs_kill_tree(launcher->nodes[n].pid);
}

static void events_ready(struct launcher *launcher)
{
    struct run_event event;
    while (read(launcher->events[0], &event, sizeof(event)) == sizeof(event)) {
        if (event.what == EVENT_DIE) {
            die(launcher, (unsigned)event.value);
        } else if (event.what == EVENT_STATUS) {
            if (launcher->given < 0)
                launcher->given = event.value;
        } else {
            say_info("the step is signalled: %d", (int)event.value);
            signal_tasks(launcher, event.value);
            if (event.value == SIGTERM)
                kill_later(launcher, KILL_WAIT_MS);
        }
    }
}

static void on_signal(struct launcher *launcher, int sig)
{
    if (sig == SIGCHLD) {
        procs_reap(); /* nodes say themselves how it went; others are what their tasks have left */
        return;
    }
    if (sig == SIGINT && launcher->interrupted) {
        launcher_kill_tasks(launcher);
        return;
    }
    if (sig == SIGINT)
        say_error("interrupt (once more: the tasks are killed)");
    launcher->interrupted |= sig == SIGINT;
    signal_tasks(launcher, sig);
    if (sig == SIGTERM || sig == SIGHUP)
        kill_later(launcher, KILL_WAIT_MS);
}

static void signals_ready(struct launcher *launcher)
{
    struct signalfd_siginfo info;
    while (read(launcher->signals, &info, sizeof(info)) == sizeof(info))
        on_signal(launcher, (int)info.ssi_signo);
}

static int next_deadline(const struct launcher *launcher)
{
    int64_t first = launcher->kill_at;
    if (launcher->alike.until != 0 && (first == 0 || launcher->alike.until < first))
        first = launcher->alike.until;
    if (launcher->timeout_at != 0 && (first == 0 || launcher->timeout_at < first))
        first = launcher->timeout_at;
    int64_t io = io_wait(launcher->run->io);
    if (io != 0 && (first == 0 || io < first))
        first = io;
    for (unsigned i = 0; i < launcher->run->faults->n; i++)
        if (launcher->die_at[i] != 0 && (first == 0 || launcher->die_at[i] < first))
            first = launcher->die_at[i];
    return first == 0 ? -1 : deadline_left(first);
}

static void check_deadlines(struct launcher *launcher)
{
    int64_t now = now_ms();
    for (unsigned i = 0; i < launcher->run->faults->n; i++)
        if (launcher->die_at[i] != 0 && launcher->die_at[i] <= now)
            die(launcher, i);
    if (launcher->alike.until != 0 && launcher->alike.until <= now)
        tell_alike(launcher);
    if (launcher->timeout_at != 0 && launcher->timeout_at <= now) {
        launcher->timeout_at = 0;
        say_error("--timeout: %g s are over; the tasks are killed",
                  (double)launcher->run->timeout / 1000);
        if (launcher->given < 0)
            launcher->given = LAUNCHER_TIMEOUT_STATUS;
        launcher_kill_tasks(launcher);
    }
    if (launcher->kill_at != 0 && launcher->kill_at <= now)
        launcher_kill_tasks(launcher);
}

/* ---- the loop ---- */

static void serve_once(struct launcher *launcher, int timeout)
{
    uint32_t nnodes = launcher->run->step.nnodes;
    struct pollfd *fds = launcher->fds;
    nfds_t n = 0, nio;
    fds[n++] = (struct pollfd){launcher->signals, POLLIN, 0};
    fds[n++] = (struct pollfd){launcher->events[0], POLLIN, 0};
    for (uint32_t i = 0; i < nnodes; i++)
        fds[n++] = (struct pollfd){launcher->nodes[i].control, POLLIN, 0};
    nio = io_poll(launcher->run->io, fds + n);
    if (poll(fds, n + nio, timeout) < 0)
        return;
    io_ready(launcher->run->io, fds + n, nio);
    if (fds[0].revents)
        signals_ready(launcher);
    if (fds[1].revents)
        events_ready(launcher);
    for (uint32_t i = 0; i < nnodes; i++)
        if (fds[2 + i].revents)
            control_ready(launcher, i);
    check_deadlines(launcher);
}

void launcher_serve(struct launcher *launcher)
{
    while (launcher->live > 0)
        serve_once(launcher, next_deadline(launcher));
    tell_alike(launcher);
    launcher->run->rm->ended(launcher->run, true);
    /* What killed nodes left is ours now, and may hold outputs. */
    procs_kill_children(NULL, 0, LEFT_MS);
    int64_t drained = now_ms() + DRAIN_MS;
    while (!io_done(launcher->run->io) && deadline_left(drained) > 0)
        serve_once(launcher, deadline_left(drained));
    io_finish(launcher->run->io);
}
