/** @file
 * srun's part, in musterrun's first process: it starts the nodes, carries input and output, and
 * keeps everything that a run makes, processes too, so that nothing is left when it ends.
 */
#include "common/util/clock.h"
#include "shims/slurm/standin/procs.h"
#include "shims/slurm/standin/run.h"
#include "shims/slurm/standin/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

struct node {
    pid_t pid;
    int control; /* -1: gone */
    bool done;   /* it said so */
};

struct srun {
    struct run *run;
    struct node *nodes;
    uint32_t live;  /* nodes whose process is there */
    uint32_t ended; /* tasks */
    int signals, events[2];
    int status;
    bool interrupted, killing;
    int64_t kill_at; /* ms; 0: not */
    int64_t die_at[FAULTS_MAX];
    struct pollfd *fds;
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

static void kill_tasks(struct srun *srun)
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
        kill_tasks(srun);
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
        kill_tasks(srun);
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
        kill_tasks(srun);
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
        kill_tasks(srun);
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

static void serve(struct srun *srun)
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

/* ---- the start ---- */

static int fork_node(struct srun *srun, uint32_t n, struct err *err)
{
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, "socketpair: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < n; i++)
            close(srun->nodes[i].control);
        close(ends[0]);
        close(srun->signals);
        close(srun->events[0]);
        close(srun->events[1]);
        stepd_run(srun->run, n, ends[1]);
    }
    close(ends[1]);
    srun->nodes[n] = (struct node){.pid = pid, .control = ends[0]};
    if (pid < 0)
        return err_set(err, "fork: %s", strerror(errno));
    srun->live++;
    return 0;
}

/* Those signals are ours that are not ignored, as nohup has SIGHUP. */
static int open_signals(struct srun *srun)
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
    sigprocmask(SIG_BLOCK, &set, &srun->run->mask);
    srun->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return srun->signals;
}

/* srun's turn with the plugin. @return its state, or NULL */
static void *prelaunch(struct run *run)
{
    struct slurm_abi_step_info info = {
        .het_job_id = SLURM_ABI_NO_VAL,
        .step_id = slurm_abi_step_id(run->step.job, run->step.step, SLURM_ABI_NO_VAL),
    };
    void *state;

    info.step_layout = slurm_abi_step_layout_get(&info.step_id);
    state = info.step_layout ? run->plugin.prelaunch(&info, &run->env) : NULL;
    if (info.step_layout)
        slurm_abi_step_layout_free(info.step_layout);
    return state;
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
    files.rlim_cur = files.rlim_max; /* three pipes a task */
    setrlimit(RLIMIT_NOFILE, &files);
}

static int prepare(struct srun *srun, struct err *err)
{
    struct run *run = srun->run;

    /* libpmix's server crashes without: it looks for the home directory */
    if (!getpwuid(geteuid()))
        return err_set(err, "uid %u has no entry in the user database, and libpmix needs one",
                       geteuid());
    raise_limits(run);
    srun->nodes = calloc(run->step.nnodes, sizeof(*srun->nodes));
    if (!srun->nodes || pipe2(srun->events, O_CLOEXEC | O_NONBLOCK) < 0 || open_signals(srun) < 0)
        return err_set(err, "cannot start: %s", strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run->slurmd = slurmd_open(&run->step, &run->faults, err);
    run->io = run->slurmd ? io_open(run->step.ntasks, run->input, run->label, err) : NULL;
    if (!run->io)
        return -1;
    srun->fds = calloc(2 + run->step.nnodes + io_max(run->io), sizeof(*srun->fds));
    return srun->fds ? copy_env(run, err) : err_set(err, "out of memory");
}

/* The slurmds' threads come after the forks. @return how many nodes are running */
static uint32_t start(struct srun *srun, struct err *err)
{
    const struct run *run = srun->run;
    int64_t now = now_ms();
    int rc = 0;

    for (uint32_t n = 0; rc == 0 && n < run->step.nnodes; n++)
        rc = fork_node(srun, n, err);
    io_parent(run->io);
    if (rc == 0)
        rc = slurmd_start(run->slurmd, srun->events[1], err);
    for (unsigned i = 0; i < run->faults.n; i++)
        if (run->faults.list[i].kind == FAULT_DIE && run->faults.list[i].after >= 0)
            srun->die_at[i] = now + run->faults.list[i].after;
    if (rc < 0)
        kill_tasks(srun);
    return srun->live;
}

/* With the directory made. */
static int run_in_dir(struct srun *srun, struct err *err)
{
    struct run *run = srun->run;
    void *state;

    if (prepare(srun, err) < 0 || plugin_load(&run->plugin, run->plugin_path, err) < 0)
        return -1;
    state = prelaunch(run);
    if (!state)
        return err_set(err, "MPI plugin: prelaunch failed");
    if (start(srun, err) > 0)
        serve(srun);
    run->plugin.client_fini(state);
    run->plugin.fini();
    return err->text[0] == '\0' ? 0 : -1;
}

int srun_run(struct run *run)
{
    struct srun srun = {.run = run};
    struct err err = {0};

    standin_describe(&run->step, NULL);
    if (rundir_make(&run->step, &err) == 0) {
        run_in_dir(&srun, &err);
        rundir_remove(&run->step);
        faults_report(&run->faults, stderr);
    }
    if (err.text[0] == '\0')
        return srun.status;
    slurm_abi_error("%s", err.text);
    return srun.status > 0 ? srun.status : 1;
}
