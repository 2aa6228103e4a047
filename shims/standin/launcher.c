/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * musterrun's first process, the part of srun or of flux run: it starts the nodes, carries input
 * and output, and keeps everything that a run makes, processes too, so that nothing is left when it
 * ends.
 */
#include "shims/standin/launcher.h"

#include "common/util/clock.h"
#include "shims/standin/procs.h"
#include "shims/standin/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* To remove the directory with, when all others are used. */
static int open_spare(struct launcher *launcher, struct err *err)
{
    for (int i = 0; i < LAUNCHER_SPARE; i++) {
        launcher->spare[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (launcher->spare[i] < 0)
            return err_set(err, "cannot start: %s", strerror(errno));
    }
    return 0;
}

static void close_spare(const struct launcher *launcher)
{
    for (int i = 0; i < LAUNCHER_SPARE; i++)
        close(launcher->spare[i]);
}

static int fork_node(struct launcher *launcher, uint32_t n, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, "socketpair: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < n; i++)
            close(launcher->nodes[i].control);
        close(ends[0]);
        close(launcher->signals);
        close(launcher->events[0]);
        close_spare(launcher);
        launcher->run->rm->node(launcher->run, n, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(err, "fork: %s", strerror(errno));
    }
    launcher->nodes[n] = (struct launched){.pid = pid, .control = ends[0]};
    launcher->live++;
    return 0;
}

/* Those signals are ours that are not ignored, as nohup has SIGHUP. */
static int open_signals(struct launcher *launcher)
{
    static const int ours[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    struct sigaction found;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (sigaction(ours[i], NULL, &found) == 0 && found.sa_handler != SIG_IGN)
            sigaddset(&set, ours[i]);
    signal(SIGCHLD, SIG_DFL);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, &launcher->run->mask);
    launcher->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return launcher->signals;
}

static int copy_env(struct run *run, struct err *err)
{
    size_t n = 0;
    while (environ[n])
        n++;
    run->env = calloc(n + 1, sizeof(*run->env));
    for (size_t i = 0; run->env && i < n; i++)
        if (!(run->env[i] = strdup(environ[i])))
            return err_set(err, "out of memory");
    return run->env ? 0 : err_set(err, "out of memory");
}

static void raise_limits(struct run *run)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &run->files) < 0)
        return;
    files = run->files;
    files.rlim_cur = files.rlim_max; /* the ends of three pipes a task */
    setrlimit(RLIMIT_NOFILE, &files);
}

/* libpmix's server crashes without an entry for its user: it looks for the home directory. */
static int find_self(struct err *err)
{
    errno = 0;
    if (getpwuid(geteuid()) != NULL)
        return 0;
    /* the values that getpwuid(3) names for "not there" */
    if (errno == 0 || errno == ENOENT || errno == ESRCH || errno == EBADF || errno == EPERM)
        return err_set(err, "uid %u has no entry in the user database, and libpmix needs one",
                       geteuid());
    return err_set(err, "cannot look for uid %u in the user database: %s", geteuid(),
                   strerror(errno));
}

static int prepare(struct launcher *launcher, struct err *err)
{
    struct run *run = launcher->run;
    if (find_self(err) < 0)
        return -1;
    raise_limits(run);
    launcher->nodes = calloc(run->step.nnodes, sizeof(*launcher->nodes));
    launcher->alike.ranks = calloc(run->step.ntasks, sizeof(*launcher->alike.ranks));
    if (!launcher->nodes || !launcher->alike.ranks ||
        pipe2(launcher->events, O_CLOEXEC | O_NONBLOCK) < 0 || open_signals(launcher) < 0)
        return err_set(err, "cannot start: %s", strerror(errno));
    for (uint32_t n = 0; n < run->step.nnodes; n++)
        launcher->nodes[n].control = -1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (copy_env(run, err) < 0)
        return -1;
    run->io = io_open(&run->step, run->input, run->label, run->outputs, err);
    if (!run->io)
        return -1;
    launcher->fds = calloc(2 + run->step.nnodes + io_max(run->io), sizeof(*launcher->fds));
    return launcher->fds ? 0 : err_set(err, "out of memory");
}

/* Threads come after the forks. @return how many nodes are running */
static uint32_t start(struct launcher *launcher, struct err *err)
{
    const struct run *run = launcher->run;
    int64_t now = now_ms();
    int rc = 0;
    for (uint32_t n = 0; rc == 0 && n < run->step.nnodes; n++)
        rc = fork_node(launcher, n, err);
    if (rc == 0)
        rc = run->rm->start(launcher->run, err);
    for (unsigned i = 0; i < run->faults->n; i++)
        if (run->faults->list[i].kind == FAULT_DIE && run->faults->list[i].after >= 0)
            launcher->die_at[i] = now + run->faults->list[i].after;
    if (run->timeout > 0)
        launcher->timeout_at = now + run->timeout;
    if (rc < 0)
        launcher_kill_tasks(launcher);
    return launcher->live;
}

/* ---- all tasks have ended, and the resource manager's part ends, or waits for what they have
 * spawned, in processes of our own group ---- */

struct closing {
    struct launcher *launcher;
    pthread_t thread;
    int stop; /* eventfd; -1: no thread looks */
};

/* The thread. What asks us to end asks them; a terminal has told them itself. */
static void *closing_run(void *arg)
{
    struct closing *closing = arg;
    struct launcher *launcher = closing->launcher;
    struct pollfd fds[] = {{closing->stop, POLLIN, 0}, {launcher->signals, POLLIN, 0}};
    struct signalfd_siginfo info;
    while (fds[0].revents == 0) {
        int ms = launcher->timeout_at != 0 ? deadline_left(launcher->timeout_at) : -1;
        if (ms == 0) {
            say_error("--timeout: %g s are over; what the tasks have spawned is ended",
                      (double)launcher->run->timeout / 1000);
            launcher->given = LAUNCHER_TIMEOUT_STATUS;
            launcher->timeout_at = 0;
            procs_signal_group(SIGTERM);
        }
        if (poll(fds, 2, ms) <= 0 || fds[1].revents == 0)
            continue;
        while (read(launcher->signals, &info, sizeof(info)) == sizeof(info)) {
            int sig = (int)info.ssi_signo;
            if (sig != SIGCHLD && (sig != SIGINT || info.ssi_code != SI_KERNEL))
                procs_signal_group(sig == SIGINT ? SIGTERM : sig);
        }
    }
    return NULL;
}

static int close_rm(struct launcher *launcher)
{
    struct closing closing = {.launcher = launcher, .stop = eventfd(0, EFD_CLOEXEC)};
    uint64_t one = 1;
    bool looks =
        closing.stop >= 0 && pthread_create(&closing.thread, NULL, closing_run, &closing) == 0;
    int status = launcher->run->rm->close(launcher->run);
    if (looks && write(closing.stop, &one, sizeof(one)) == sizeof(one))
        pthread_join(closing.thread, NULL);
    if (closing.stop >= 0)
        close(closing.stop);
    return status;
}

/* With the directory made. */
static int run_in_dir(struct launcher *launcher, struct err *err)
{
    struct run *run = launcher->run;
    if (prepare(launcher, err) < 0 || run->rm->open(run, launcher->events[1], err) < 0)
        return -1;
    if (start(launcher, err) > 0)
        launcher_serve(launcher);
    int status = close_rm(launcher);
    if (status > 0)
        launcher->status = status;
    return err->text[0] == '\0' ? 0 : -1;
}

int launcher_run(struct run *run)
{
    struct launcher launcher = {.run = run, .given = -1};
    struct err err = {0};
    say_describe(&run->step, NULL);
    if (open_spare(&launcher, &err) == 0 && rundir_make(&run->step, &err) == 0) {
        run_in_dir(&launcher, &err);
        close_spare(&launcher);
        rundir_remove(&run->step);
        faults_report(run->faults, stderr);
    }
    if (err.text[0] == '\0')
        return launcher.given >= 0 ? launcher.given : launcher.status;
    say_error("%s", err.text);
    return launcher.status > 0 ? launcher.status : 1;
}
