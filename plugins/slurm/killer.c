/** @file
 * Ends the step when it cannot be served.
 */
#include "plugins/slurm/killer.h"

#include "common/util/log.h"
#include "shims/slurm/slurm_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 5,
    RETRY_MS = 1000,
    STOP_S = 1, /* for an answer of slurmctld that is on its way */
    SAID_MS = 500,
    SAID_STEP_MS = 5,
};

/* All that the thread needs: it may outlive the step's session. */
struct killer {
    pthread_t thread;
    int stop; /* eventfd */
    uint32_t jobs[FACTS_JOBS_MAX], njobs, step;
    struct step_run runs[FACTS_JOBS_MAX];
    char *node;
};

static void killer_free(struct killer *killer)
{
    if (killer->stop >= 0)
        close(killer->stop);
    free(killer->node);
    free(killer);
}

/* slurmstepd unloads us when fini() returns; a thread that is still in here must not notice. */
static int stay_loaded(void)
{
    Dl_info info;

    return dladdr((void *)(uintptr_t)stay_loaded, &info) != 0 &&
                   dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)
               ? 0
               : -1;
}

static void kill_job(const struct killer *killer, uint32_t job, const struct step_run *run)
{
    struct pollfd stop = {killer->stop, POLLIN, 0};

    for (int tries = 1;; tries++) {
        if (step_run_kill(job, killer->step, run) == 0 || errno == SLURM_ABI_ALREADY_DONE ||
            errno == SLURM_ABI_INVALID_JOB_ID)
            return; /* it ends, or another node was faster */
        if (tries == TRIES) {
            log_error("cannot end step %u.%u from node %s: %s; its tasks hang: scancel %u.%u", job,
                      killer->step, killer->node, slurm_abi_strerror(errno), job, killer->step);
            return;
        }
        /* slurmstepd may have been somebody else for a moment; see watch.c */
        if (poll(&stop, 1, RETRY_MS) > 0)
            return;
    }
}

/* What the user is told goes through a pipe from slurmstepd's standard error to its own loop, and
 * on to srun, which drops all that comes after a task has ended by SIGKILL. */
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
    const struct killer *killer = arg;

    let_it_be_said(killer);
    for (uint32_t i = 0; i < killer->njobs; i++)
        kill_job(killer, killer->jobs[i], &killer->runs[i]);
    return NULL;
}

struct killer *killer_start(const struct facts *facts)
{
    struct killer *killer = calloc(1, sizeof(*killer));
    int rc = ENOMEM;

    if (killer) {
        memcpy(killer->jobs, facts->jobs, sizeof(killer->jobs));
        memcpy(killer->runs, facts->runs, sizeof(killer->runs));
        killer->njobs = facts->njobs;
        killer->step = facts->step;
        killer->node = strdup(facts->node);
        killer->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (killer->node && killer->stop >= 0 && stay_loaded() == 0)
            rc = pthread_create(&killer->thread, NULL, run, killer);
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
    struct timespec until;
    uint64_t one = 1;

    if (!killer)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_s;
    if (wait_s > 0 && pthread_timedjoin_np(killer->thread, NULL, &until) == 0) {
        killer_free(killer);
        return;
    }
    if (write(killer->stop, &one, sizeof(one)) < 0)
        log_debug("eventfd: %s", strerror(errno));
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_S;
    if (pthread_timedjoin_np(killer->thread, NULL, &until) == 0) {
        killer_free(killer);
    } else {
        log_debug("slurmctld does not answer on node %s: not waited for", killer->node);
        pthread_detach(killer->thread);
    }
}
