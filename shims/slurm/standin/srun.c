/** @file
 * srun's part, in musterrun's first process: it starts the nodes, carries input and output, and
 * keeps everything that a run makes, processes too, so that nothing is left when it ends.
 */
#include "shims/slurm/standin/srun.h"

#include "common/util/clock.h"
#include "shims/slurm/standin/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

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
    if (pid < 0) {
        close(ends[0]);
        return err_set(err, "fork: %s", strerror(errno));
    }
    srun->nodes[n] = (struct node){.pid = pid, .control = ends[0]};
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
    for (uint32_t n = 0; n < run->step.nnodes; n++)
        srun->nodes[n].control = -1;
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
        srun_kill_tasks(srun);
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
        srun_serve(srun);
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
