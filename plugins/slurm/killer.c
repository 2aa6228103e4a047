/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Ends the step when it cannot be served. The tasks of this node are killed once slurmctld has been
 * asked: whatever it answers, they end, and srun's status is that of a task that was killed.
 */
#include "plugins/slurm/killer.h"

#include "common/util/log.h"
#include "common/util/thread.h"
#include "plugins/slurm/step_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum {
    STOP_MS = 1000,   /* how long killer_stop() waits for slurmctld's answer */
    SAID_MS = 500,    /* how long a line for the user may take to leave slurmstepd's pipe */
    SAID_STEP_MS = 5, /* how often the pipe is looked at */
};

/* All that the thread needs: it may outlive the step's session. */
struct killer {
    pthread_t thread;
    int stop;  /* eventfd */
    int asked; /* eventfd: slurmctld has been asked, and need not be waited for any more */
    uint32_t jobs[FACTS_JOBS_MAX], njobs, step;
    struct step_run runs[FACTS_JOBS_MAX];
    uint64_t begun; /* s since the epoch */
    char *node;
    int *tasks; /* pidfds */
    size_t ntasks;
};

static void killer_free(struct killer *killer)
{
    if (killer->stop >= 0)
        close(killer->stop);
    if (killer->asked >= 0)
        close(killer->asked);
    for (size_t i = 0; i < killer->ntasks; i++)
        close(killer->tasks[i]);
    free(killer->tasks);
    free(killer->node);
    free(killer);
}

/* Only a child of slurmstepd's: its number is the user's word, and may have become another
 * process's, and this may be root. */
static void kill_tasks(const struct killer *killer)
{
#ifdef SYS_pidfd_send_signal
    for (size_t i = 0; i < killer->ntasks; i++) {
        siginfo_t info;
        int fd = killer->tasks[i];
        if (waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED | WNOWAIT | WNOHANG) < 0 ||
            syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0)
            log_debug("a task on node %s cannot be killed: %s", killer->node, strerror(errno));
    }
#else
    (void)killer;
#endif
}

/* Waits between two tries. A refusal does not count as slurmctld's answer: slurmstepd may have
 * asked while it had another uid for a moment (watch.c), so the next try may succeed. */
static bool pause_killer(void *arg, enum step_end_answer answer, unsigned ms)
{
    const struct killer *killer = arg;
    struct pollfd stop = {killer->stop, POLLIN, 0};
    uint64_t one = 1;
    kill_tasks(killer);
    if (answer != STEP_END_REFUSED && write(killer->asked, &one, sizeof one) < 0)
        log_debug("eventfd: %s", strerror(errno));
    return poll(&stop, 1, (int)ms) > 0;
}

/* A line for the user goes through a pipe from slurmstepd's standard error to slurmstepd's own
 * loop, and from there to srun. srun drops all that comes after a task has ended by SIGKILL. So
 * this waits until the pipe is empty. */
static void let_it_be_said(const struct killer *killer)
{
    struct pollfd stop = {killer->stop, POLLIN, 0};
    int waiting;
    for (int ms = 0; ms < SAID_MS; ms += SAID_STEP_MS)
        if (ioctl(STDERR_FILENO, FIONREAD, &waiting) != 0 || waiting == 0 ||
            poll(&stop, 1, SAID_STEP_MS) > 0)
            return;
}

/* The thread. */
static void *run(void *arg)
{
    struct killer *killer = arg;
    const struct step_end end = {.jobs = killer->jobs,
                                 .runs = killer->runs,
                                 .njobs = killer->njobs,
                                 .step = killer->step,
                                 .begun = killer->begun,
                                 .hangs = killer->ntasks == 0,
                                 .fails = true,
                                 .pause = pause_killer,
                                 .arg = killer};
    uint64_t one = 1;
    let_it_be_said(killer);
    bool ended = step_end(&end);
    kill_tasks(killer); /* of a step that slurmctld does not know */
    if (ended && write(killer->asked, &one, sizeof one) < 0)
        log_debug("eventfd: %s", strerror(errno));
    return NULL;
}

/* @return whether there was memory */
static bool take_tasks(struct killer *killer, const struct pollfd *tasks, size_t n)
{
    killer->tasks = calloc(n + 1, sizeof(*killer->tasks));
    for (size_t i = 0; killer->tasks && i < n; i++) {
        int fd = fcntl(tasks[i].fd, F_DUPFD_CLOEXEC, 0);
        if (fd >= 0)
            killer->tasks[killer->ntasks++] = fd;
    }
    return killer->tasks != NULL;
}

struct killer *killer_start(const struct facts *facts, const struct pollfd *tasks, size_t ntasks)
{
    struct killer *killer = calloc(1, sizeof(*killer));
    int rc = ENOMEM;
    if (killer) {
        memcpy(killer->jobs, facts->jobs, sizeof(killer->jobs));
        memcpy(killer->runs, facts->runs, sizeof(killer->runs));
        killer->njobs = facts->njobs;
        killer->step = facts->step;
        killer->begun = (uint64_t)time(NULL);
        killer->node = strdup(facts->node);
        killer->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        killer->asked = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (killer->node && killer->stop >= 0 && killer->asked >= 0 &&
            take_tasks(killer, tasks, ntasks) && thread_stay_loaded())
            rc = thread_start(&killer->thread, run, killer);
    }
    if (rc == 0)
        return killer;
    log_error("node %s cannot end step %u.%u: %s; its tasks hang: scancel %u.%u", facts->node,
              facts->job, facts->step, strerror(rc), facts->job, facts->step);
    if (killer)
        killer_free(killer);
    return NULL;
}

void killer_stop(struct killer *killer, unsigned wait_s)
{
    struct pollfd asked;
    uint64_t one = 1;
    if (!killer)
        return;
    asked = (struct pollfd){killer->asked, POLLIN, 0};
    if (wait_s > 0)
        poll(&asked, 1, (int)wait_s * 1000);
    if (write(killer->stop, &one, sizeof(one)) < 0)
        log_debug("eventfd: %s", strerror(errno));
    if (thread_join_until(killer->thread, now_ms() + STOP_MS)) {
        killer_free(killer);
    } else {
        log_debug("slurmctld does not answer on node %s: not waited for", killer->node);
        pthread_detach(killer->thread);
    }
}
