/** @file
 * slurmstepd's part: one process for each node.
 *
 *     own listening socket → plugin: prefork → fork the tasks → signals and ends → plugin: fini
 *
 * It goes on when srun's process is killed: it kills its tasks then, and takes the directory away.
 */
#include "shims/slurm/standin/procs.h"
#include "shims/slurm/standin/run.h"
#include "shims/slurm/standin/rundir.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SERVERS_MAX = 8,
    STRAYS_MS = 5000, /* for what tasks leave behind, once killed, to be gone */
};

struct stepd {
    struct run *run;
    const struct standin_node *node;
    uint32_t index;
    int control; /* -1: srun is gone */
    int children;
    pid_t *tasks; /* by slot; 0: ended */
    uint32_t running;
    pid_t kept[SERVERS_MAX]; /* what the plugin has started before the tasks */
    size_t nkept;
};

static void report(struct stepd *stepd, int what, uint32_t rank, int status)
{
    struct report record = {.what = what, .rank = rank, .status = status};

    if (stepd->control >= 0 &&
        send(stepd->control, &record, sizeof(record), MSG_NOSIGNAL) != sizeof(record))
        slurm_abi_debug("srun does not listen any more");
}

/* By its name the plugin knows where it is. */
static int make_socket(const struct stepd *stepd)
{
    const struct standin_step *step = &stepd->run->step;
    const char *name = stepd->node->name;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s/%s_%u.%u", step->dir, name, name,
                 step->job, step->step) >= (int)sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -1 : listen(fd, 16);
}

/* All that comes before the tasks. The step record is not ours to make: its layout is Slurm's
 * secret, and muster's plugin does not look at it. */
static int prepare(struct stepd *stepd)
{
    struct run *run = stepd->run;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    void *options = NULL;
    int noptions = 0;

    slurmd_path(&run->step, stepd->node, path, sizeof(path));
    /* The server that the plugin starts inherits it. */
    if (make_socket(stepd) < 0 || setenv("SLURM_CONF", path, 1) < 0) {
        slurm_abi_error("cannot make its socket: %s", strerror(errno));
        return -1;
    }
    slurm_abi_init(NULL);
    run->plugin.conf_options(&options, &noptions);
    run->plugin.conf_set(NULL);
    if (run->plugin.prefork(NULL, &run->env) != SLURM_ABI_SUCCESS) {
        slurm_abi_error("MPI plugin: prefork failed");
        return -1;
    }
    stepd->nkept = procs_children(getpid(), stepd->kept, SERVERS_MAX);
    return 0;
}

/* Nothing of a node that was killed stays behind. A group of its own, so that a signal to the task
 * reaches what it starts. */
static void be_owned(pid_t stepd)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != stepd)
        _exit(1);
}

static void start_tasks(struct stepd *stepd)
{
    pid_t self = getpid();

    for (uint32_t slot = 0; slot < stepd->node->ntasks; slot++) {
        pid_t pid = fork();

        if (pid == 0) {
            be_owned(self);
            task_run(stepd->run, stepd->index, slot);
        }
        if (pid < 0) {
            slurm_abi_error("fork: %s", strerror(errno));
            report(stepd, REPORT_ENDED, stepd->node->ranks[slot], 1 << 8);
            continue;
        }
        setpgid(pid, pid); /* whoever is first: signals come after this */
        stepd->tasks[slot] = pid;
        stepd->running++;
    }
    io_pass(stepd->run->io, stepd->node);
}

static void signal_tasks(struct stepd *stepd, int sig)
{
    for (uint32_t slot = 0; slot < stepd->node->ntasks; slot++)
        if (stepd->tasks[slot] > 0 && kill(-stepd->tasks[slot], sig) < 0)
            kill(stepd->tasks[slot], sig); /* it has gone to another group */
}

static void control_ready(struct stepd *stepd)
{
    int32_t sig;
    ssize_t n = recv(stepd->control, &sig, sizeof(sig), 0);

    if (n == sizeof(sig)) {
        signal_tasks(stepd, sig);
    } else if (n == 0 || errno != EINTR) {
        close(stepd->control);
        stepd->control = -1;
        signal_tasks(stepd, SIGKILL);
    }
}

static void reap(struct stepd *stepd)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    if (read(stepd->children, &info, sizeof(info)) < 0)
        return;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t slot = 0; slot < stepd->node->ntasks; slot++) {
            if (stepd->tasks[slot] != pid)
                continue;
            stepd->tasks[slot] = 0;
            stepd->running--;
            report(stepd, REPORT_ENDED, stepd->node->ranks[slot], status);
        }
    }
}

static void serve(struct stepd *stepd)
{
    while (stepd->running > 0) {
        struct pollfd fds[] = {{stepd->control, POLLIN, 0}, {stepd->children, POLLIN, 0}};

        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            reap(stepd);
        if (fds[0].revents)
            control_ready(stepd);
    }
}

/* Past signals that came too late. */
static bool srun_is_gone(const struct stepd *stepd)
{
    int32_t sig;
    ssize_t n;

    if (stepd->control < 0)
        return true;
    do {
        n = recv(stepd->control, &sig, sizeof(sig), MSG_DONTWAIT);
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n == 0 || errno != EAGAIN;
}

void stepd_run(struct run *run, uint32_t node, int control)
{
    struct stepd stepd = {
        .run = run, .node = &run->step.nodes[node], .index = node, .control = control};
    sigset_t children;
    int status = 1;

    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    standin_describe(&run->step, stepd.node);
    io_keep(run->io, stepd.node);
    slurmd_leave(run->slurmd);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    stepd.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    stepd.tasks = calloc(stepd.node->ntasks, sizeof(*stepd.tasks));
    if (stepd.children >= 0 && stepd.tasks && prepare(&stepd) == 0) {
        start_tasks(&stepd);
        serve(&stepd);
        procs_kill_children(stepd.kept, stepd.nkept, STRAYS_MS);
        status = 0;
    }
    run->plugin.fini();
    report(&stepd, status == 0 ? REPORT_DONE : REPORT_FAILED, 0, 0);
    if (srun_is_gone(&stepd))
        rundir_remove_node(&run->step, stepd.node);
    _exit(status);
}
