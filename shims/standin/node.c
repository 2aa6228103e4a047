/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The process of a node and its tasks.
 */
#include "shims/standin/node.h"

#include "shims/standin/procs.h"
#include "shims/standin/rundir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRAYS_MS = 5000 /* for what tasks leave behind, once killed, to be gone */ };

int node_open(struct node *node, struct run *run, uint32_t index, int control)
{
    sigset_t children;
    *node = (struct node){
        .run = run, .here = &run->step.nodes[index], .index = index, .control = control};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (node->here->conf)
        setenv("MUSTER_CONF", node->here->conf, 1);
    say_describe(&run->step, node->here);
    io_leave(run->io);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    node->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    node->tasks = calloc(node->here->ntasks, sizeof(*node->tasks));
    return node->children >= 0 && node->tasks ? 0 : -1;
}

/* @param fds go with it; borrowed */
static void report(struct node *node, struct report record, const int *fds, size_t nfds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(IO_ENDS * sizeof(*fds))];
    } room = {.head = {.cmsg_len = CMSG_LEN(nfds * sizeof(*fds)),
                       .cmsg_level = SOL_SOCKET,
                       .cmsg_type = SCM_RIGHTS}};
    struct iovec bytes = {&record, sizeof(record)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    ssize_t n;
    if (nfds > 0) {
        memcpy(CMSG_DATA(&room.head), fds, nfds * sizeof(*fds));
        message.msg_control = &room;
        message.msg_controllen = CMSG_SPACE(nfds * sizeof(*fds));
    }
    if (node->control < 0)
        return;
    do
        n = sendmsg(node->control, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != sizeof(record))
        say_debug("musterrun does not listen any more: %s", strerror(errno));
}

static void report_end(struct node *node, uint32_t slot, int status)
{
    struct report record = {
        .what = REPORT_ENDED, .rank = node->here->ranks[slot], .status = status};
    report(node, record, NULL, 0);
}

void node_keep_children(struct node *node)
{
    node->nkept = procs_children(getpid(), node->kept, NODE_SERVERS_MAX);
}

/* Nothing of a node that was killed stays behind. A group of its own, so that a signal to the task
 * reaches what it starts. */
static void be_owned(pid_t owner)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner)
        _exit(1);
}

/* The task's pipes are there only while it is forked, and no other task gets them. */
static void pass_pipes(struct node *node, uint32_t rank)
{
    int ends[IO_ENDS];
    size_t n = io_ends(node->run->io, rank, ends);
    report(node, (struct report){.what = REPORT_STARTED, .rank = rank}, ends, n);
    io_shut(node->run->io, rank);
}

pid_t node_fork(struct node *node, uint32_t slot)
{
    uint32_t rank = node->here->ranks[slot];
    pid_t self = getpid(), pid = -1;
    if (io_make(node->run->io, rank) < 0) {
        say_error("cannot make the pipes of task %u: %s", rank, strerror(errno));
    } else if ((pid = fork()) == 0) {
        be_owned(self);
        return 0;
    } else if (pid < 0) {
        say_error("fork: %s", strerror(errno));
        io_shut(node->run->io, rank);
    }
    if (pid < 0) {
        report_end(node, slot, 1 << 8);
        return pid;
    }
    setpgid(pid, pid); /* parent or child, whichever is first: signals come after this */
    node->tasks[slot] = pid;
    node->running++;
    pass_pipes(node, rank);
    return pid;
}

static void signal_tasks(struct node *node, int sig)
{
    for (uint32_t slot = 0; slot < node->here->ntasks; slot++)
        if (node->tasks[slot] > 0 && kill(-node->tasks[slot], sig) < 0)
            kill(node->tasks[slot], sig); /* it has gone to another group */
}

void node_control_ready(struct node *node)
{
    int32_t sig;
    ssize_t n = recv(node->control, &sig, sizeof(sig), 0);
    if (n == sizeof(sig)) {
        signal_tasks(node, sig);
    } else if (n == 0 || errno != EINTR) {
        close(node->control);
        node->control = -1;
        signal_tasks(node, SIGKILL);
    }
}

void node_children_ready(struct node *node)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;
    if (read(node->children, &info, sizeof(info)) < 0)
        return;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t slot = 0; slot < node->here->ntasks; slot++) {
            if (node->tasks[slot] != pid)
                continue;
            node->tasks[slot] = 0;
            node->running--;
            if (node->task_ended)
                node->task_ended(node, slot, status);
            report_end(node, slot, status);
        }
    }
}

void node_kill_strays(struct node *node)
{
    procs_kill_children(node->kept, node->nkept, STRAYS_MS);
}

/* Past signals that came too late. */
static bool launcher_is_gone(const struct node *node)
{
    int32_t sig;
    ssize_t n;
    if (node->control < 0)
        return true;
    do {
        n = recv(node->control, &sig, sizeof(sig), MSG_DONTWAIT);
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n == 0 || errno != EAGAIN;
}

void node_end(struct node *node, int status)
{
    report(node, (struct report){.what = status == 0 ? REPORT_DONE : REPORT_FAILED}, NULL, 0);
    if (launcher_is_gone(node))
        rundir_remove_node(&node->run->step, node->here);
    _exit(status);
}
