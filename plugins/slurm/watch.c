/** @file
 * Watches the server and the tasks while the step runs.
 *
 * One thread, woken by what happens and by nothing else:
 *
 *     eventfd         watch_stop()
 *     control socket  end of file: the server is dead; writable: what it has not taken yet; a byte:
 *                     it knows where all tasks are bound
 *     relay           the server's standard error
 *     task pipe       a task says its pid, from the hook that runs in it before it execs
 *     pidfds          a task ended
 *
 * All signals are blocked in it. slurmstepd changes the effective uid of all its threads while it
 * launches tasks, so it may be the user for a while: what needs root's rights is tried again, by
 * the killer (killer.h), which asks slurmctld.
 */
#include "plugins/slurm/watch.h"

#include "common/transport/wire.h"
#include "common/util/log.h"
#include "plugins/slurm/killer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* PIDFD_GET_INFO of Linux 6.15, which headers of today mostly lack. */
struct pidfd_exit {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t ids[11];
    int32_t status; /* as of wait(2) */
};
#define PIDFD_EXIT_GET _IOWR(0xff, 11, struct pidfd_exit)
#define PIDFD_EXIT_MASK (UINT64_C(1) << 3)

enum {
    POLL_STOP,
    POLL_CONTROL,
    POLL_RELAY,
    POLL_TASKS,
    POLL_FIRST_TASK, /* from here on a pidfd each */
};

enum {
    CPUS_BYTES = 2048, /* of a set of processors */
    BOUND_MS = 2000,   /* a task that is bound waits for the server no longer */
};

/* What the task hook writes; small enough to be written at once. */
struct task_note {
    uint32_t slot;
    int32_t pid;
};

struct watch {
    const struct facts *facts;
    struct launch *launch;
    pthread_t thread;
    int stop;     /* eventfd */
    int tasks[2]; /* pipe of task notes */
    int bound[2]; /* pipe with a byte for each task, once the server knows their binding */
    unsigned char cpus[CPUS_BYTES]; /* where slurmstepd may run */
    uint32_t ntasks;                /* on this node */
    bool *noted;                    /* by slot: its note came */
    uint32_t *slots;                /* by poll index less POLL_FIRST_TASK */
    struct pollfd *fds;
    nfds_t nfds;
    struct wire_out pending; /* starts and ends of tasks that the server has not taken yet */
    size_t sent;             /* bytes of pending that it has */
    struct killer *killer;   /* once the server is dead, or there was none */
};

/* Without a server the layout may be unknown too, and any one note is enough. */
static uint32_t local_tasks(const struct facts *facts, const struct launch *launch)
{
    return launch ? facts->boot.nodes[facts->boot.node].ntasks : 1;
}

/* Never blocks: a server that does not read must not hold up the rest. */
static void send_pending(struct watch *watch)
{
    while (watch->sent < watch->pending.len) {
        ssize_t n = send(watch->launch->control, watch->pending.data + watch->sent,
                         watch->pending.len - watch->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* full, or dead: then its end of file comes */
        watch->sent += (size_t)n;
    }
    watch->pending.len = watch->sent = 0;
}

static void report(struct watch *watch, uint32_t slot, uint32_t what, uint32_t code)
{
    wire_put_u32(&watch->pending, slot);
    wire_put_u32(&watch->pending, what);
    wire_put_u32(&watch->pending, code);
    send_pending(watch);
}

static void report_end(struct watch *watch, uint32_t slot, uint32_t sig, uint32_t code)
{
    log_debug("task slot %u of %s ended on node %s: signal %u, exit code %d", slot,
              watch->facts->boot.label, watch->facts->node, sig, (int)code);
    report(watch, slot, sig, code);
}

/* How a process ended that slurmstepd has reaped already, where the kernel remembers. */
static void reaped(struct watch *watch, uint32_t slot, int pidfd)
{
    struct pidfd_exit info = {.mask = PIDFD_EXIT_MASK};

    if (ioctl(pidfd, PIDFD_EXIT_GET, &info) < 0 || (info.mask & PIDFD_EXIT_MASK) == 0)
        report_end(watch, slot, 0, BOOT_CODE_UNKNOWN);
    else if (WIFSIGNALED(info.status))
        report_end(watch, slot, (uint32_t)WTERMSIG(info.status), 0);
    else
        report_end(watch, slot, 0, (uint32_t)WEXITSTATUS(info.status));
}

/* Asks how the process ended and leaves it for slurmstepd to reap, which may have been faster. */
static void task_ended(struct watch *watch, uint32_t slot, int pidfd)
{
    siginfo_t info = {0};

    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT | WNOHANG) < 0 ||
        info.si_pid == 0)
        reaped(watch, slot, pidfd);
    else if (info.si_code == CLD_EXITED)
        report_end(watch, slot, 0, (uint32_t)info.si_status);
    else
        report_end(watch, slot, (uint32_t)info.si_status, 0);
    close(pidfd);
}

static void task_started(struct watch *watch, const struct task_note *note)
{
    int pidfd = -1;

    if (note->slot >= watch->ntasks || watch->noted[note->slot] || note->pid <= 0)
        return;
    watch->noted[note->slot] = true;
    report(watch, note->slot | BOOT_TASK_STARTED, (uint32_t)note->pid, 0);
    errno = ENOSYS;
#ifdef SYS_pidfd_open
    pidfd = (int)syscall(SYS_pidfd_open, note->pid, 0);
#endif
    if (pidfd >= 0) {
        fcntl(pidfd, F_SETFD, FD_CLOEXEC);
        watch->slots[watch->nfds - POLL_FIRST_TASK] = note->slot;
        watch->fds[watch->nfds++] = (struct pollfd){pidfd, POLLIN, 0};
    } else if (errno == ESRCH) {
        report_end(watch, note->slot, 0, BOOT_CODE_UNKNOWN);
    } else {
        /* Without it the server still sees its client's connection close. */
        log_debug("cannot watch task slot %u of %s: %s", note->slot, watch->facts->boot.label,
                  strerror(errno));
    }
}

static void read_notes(struct watch *watch)
{
    struct task_note note;

    while (read(watch->tasks[0], &note, sizeof(note)) == sizeof(note)) {
        if (watch->launch) {
            task_started(watch, &note);
        } else if (!watch->noted[0]) {
            watch->noted[0] = true;
            watch->killer = killer_start(watch->facts);
        }
    }
}

static void server_died(struct watch *watch)
{
    watch->fds[POLL_CONTROL].fd = -1;
    relay_drain(&watch->launch->relay);
    log_error("muster-server of step %s died on node %s: ending the step, since its tasks would "
              "wait for it for ever",
              watch->facts->boot.label, watch->facts->node);
    watch->killer = killer_start(watch->facts);
}

/* Lets go the tasks that wait, once. A full pipe has bytes for all that can wait. */
static void tasks_bound(struct watch *watch)
{
    if (watch->bound[1] < 0)
        return;
    for (uint32_t i = 0; i < watch->ntasks; i++) {
        if (write(watch->bound[1], "", 1) < 0)
            break;
    }
    close(watch->bound[1]);
    watch->bound[1] = -1;
}

static void control_ready(struct watch *watch, short events)
{
    char buf[256];
    ssize_t n;

    if (events & POLLOUT)
        send_pending(watch);
    if ((events & ~POLLOUT) == 0)
        return;
    n = recv(watch->launch->control, buf, sizeof(buf), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        server_died(watch);
    if (n > 0)
        tasks_bound(watch); /* it has nothing else to say here, whatever it says */
}

static void tasks_ready(struct watch *watch)
{
    for (nfds_t i = POLL_FIRST_TASK; i < watch->nfds;) {
        if (watch->fds[i].revents == 0) {
            i++;
            continue;
        }
        task_ended(watch, watch->slots[i - POLL_FIRST_TASK], watch->fds[i].fd);
        /* the last one takes its place */
        watch->nfds--;
        watch->fds[i] = watch->fds[watch->nfds];
        watch->slots[i - POLL_FIRST_TASK] = watch->slots[watch->nfds - POLL_FIRST_TASK];
    }
}

/* The thread. */
static void *run(void *arg)
{
    struct watch *watch = arg;
    struct pollfd *fds = watch->fds;

    for (;;) {
        fds[POLL_RELAY].fd = watch->launch ? watch->launch->relay.fd : -1;
        fds[POLL_CONTROL].events = watch->sent < watch->pending.len ? POLLIN | POLLOUT : POLLIN;
        if (poll(fds, watch->nfds, -1) < 0)
            continue;
        if (fds[POLL_STOP].revents)
            return NULL;
        /* ends before notes: these append to the array */
        tasks_ready(watch);
        if (fds[POLL_TASKS].revents)
            read_notes(watch);
        if (fds[POLL_RELAY].revents)
            relay_read(&watch->launch->relay);
        if (fds[POLL_CONTROL].revents && fds[POLL_CONTROL].fd >= 0)
            control_ready(watch, fds[POLL_CONTROL].revents);
    }
}

static void watch_free(struct watch *watch)
{
    for (nfds_t i = POLL_FIRST_TASK; watch->fds && i < watch->nfds; i++)
        close(watch->fds[i].fd);
    for (int i = 0; i < 2; i++) {
        if (watch->tasks[i] >= 0)
            close(watch->tasks[i]);
        if (watch->bound[i] >= 0)
            close(watch->bound[i]);
    }
    if (watch->stop >= 0)
        close(watch->stop);
    wire_out_free(&watch->pending);
    free(watch->noted);
    free(watch->slots);
    free(watch->fds);
    free(watch);
}

static int prepare(struct watch *watch)
{
    size_t n = watch->ntasks;

    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->stop < 0 || pipe2(watch->tasks, O_CLOEXEC | O_NONBLOCK) < 0 ||
        pipe2(watch->bound, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    if (sched_getaffinity(0, sizeof(watch->cpus), (cpu_set_t *)watch->cpus) < 0)
        log_debug("where slurmstepd may run is not known: %s", strerror(errno));
    watch->noted = calloc(n + 1, sizeof(*watch->noted));
    watch->slots = calloc(n + 1, sizeof(*watch->slots));
    watch->fds = calloc(n + POLL_FIRST_TASK, sizeof(*watch->fds));
    if (!watch->noted || !watch->slots || !watch->fds)
        return -1;
    watch->nfds = POLL_FIRST_TASK;
    watch->fds[POLL_STOP] = (struct pollfd){watch->stop, POLLIN, 0};
    watch->fds[POLL_CONTROL] =
        (struct pollfd){watch->launch ? watch->launch->control : -1, POLLIN, 0};
    watch->fds[POLL_RELAY] = (struct pollfd){-1, POLLIN, 0};
    watch->fds[POLL_TASKS] = (struct pollfd){watch->tasks[0], POLLIN, 0};
    return 0;
}

struct watch *watch_start(const struct facts *facts, struct launch *launch, struct err *err)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    sigset_t all, before;
    int rc;

    if (!watch) {
        err_set(err, "out of memory");
        return NULL;
    }
    *watch = (struct watch){.facts = facts,
                            .launch = launch,
                            .stop = -1,
                            .tasks = {-1, -1},
                            .bound = {-1, -1},
                            .ntasks = local_tasks(facts, launch)};
    if (prepare(watch) < 0) {
        err_set(err, "cannot watch the step on node %s: %s", facts->node, strerror(errno));
        watch_free(watch);
        return NULL;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = pthread_create(&watch->thread, NULL, run, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        err_set(err, "cannot start a thread on node %s: %s", facts->node, strerror(rc));
        watch_free(watch);
        return NULL;
    }
    return watch;
}

/* libpmix tells its first client of a node where all tasks there are bound, and none later: so no
 * task may go on before the server knows. Tasks that are not bound need not wait. */
static void wait_bound(const struct watch *watch)
{
    unsigned char cpus[CPUS_BYTES] = {0};
    struct pollfd fd = {watch->bound[0], POLLIN, 0};
    char byte;

    if (sched_getaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) < 0 ||
        memcmp(cpus, watch->cpus, sizeof(cpus)) == 0)
        return;
    if (poll(&fd, 1, BOUND_MS) != 1 || read(watch->bound[0], &byte, 1) != 1)
        log_debug("a task on node %s goes on before PMIx knows where all are bound",
                  watch->facts->node);
}

void watch_task(const struct watch *watch, uint32_t slot, pid_t pid)
{
    struct task_note note = {slot, pid};

    /* Of a slurmstepd that was killed nobody could end the tasks, which wait for a server that has
     * left with it. Our parent is its main thread, which ends last. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        log_debug("task slot %u on node %s may outlive slurmstepd: %s", slot, watch->facts->node,
                  strerror(errno));
    /* A full pipe means thousands of tasks at once and costs one notice, not the task. */
    if (write(watch->tasks[1], &note, sizeof(note)) < 0)
        log_debug("task slot %u on node %s is not watched: %s", slot, watch->facts->node,
                  strerror(errno));
    else if (watch->launch)
        wait_bound(watch);
}

void watch_stop(struct watch *watch)
{
    uint64_t one = 1;

    if (!watch)
        return;
    if (write(watch->stop, &one, sizeof(one)) < 0)
        log_debug("eventfd: %s", strerror(errno));
    pthread_join(watch->thread, NULL); /* it waits for nothing but us */
    killer_stop(watch->killer);
    watch_free(watch);
}
