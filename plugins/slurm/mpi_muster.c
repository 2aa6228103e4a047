/** @file
 * mpi/muster: what Slurm loads.
 *
 * srun, slurmctld and slurmd load it too and want answers, no more. The work is slurmstepd's, once
 * for each step and node:
 *
 *     prefork   (root, main thread)    facts → temporary directory → listening socket →
 *                                      muster-server as the user → environment of each task → watch
 *     task      (user, forked child)   that environment into the task, its pid to the watch
 *     fini      (root, main thread)    the watch stops, the server leaves, nothing stays behind
 *
 * PMIx is muster-server's alone. slurmstepd runs as root, changes the uid of all its threads while
 * it launches, and forks tasks under running threads; libpmix can stand none of that.
 */
#include "common/util/log.h"
#include "plugins/slurm/facts.h"
#include "plugins/slurm/handshake.h"
#include "plugins/slurm/launch.h"
#include "plugins/slurm/listener.h"
#include "plugins/slurm/mpi_conf.h"
#include "plugins/slurm/scratch.h"
#include "plugins/slurm/watch.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* What every Slurm plugin has. */
EXPORT const char plugin_name[] = "muster PMIx host";
EXPORT const char plugin_type[] = "mpi/muster";
EXPORT const uint32_t plugin_version = MUSTER_SLURM_VERSION;
/** "mu": Slurm's own plugins have 101 to 108. */
EXPORT const uint32_t plugin_id = 0x6d75;

/* The nine operations, in Slurm's order; called by name. */
EXPORT int mpi_p_client_fini(void *state);
EXPORT void *mpi_p_client_prelaunch(const struct slurm_abi_step_info *step, char ***env);
EXPORT void *mpi_p_conf_get(void);
EXPORT void *mpi_p_conf_get_printable(void);
EXPORT void mpi_p_conf_options(void **options, int *count);
EXPORT void mpi_p_conf_set(void *table);
EXPORT int mpi_p_slurmstepd_prefork(const void *step, char ***env);
EXPORT int mpi_p_slurmstepd_task(const struct slurm_abi_task_info *task, char ***env);
EXPORT int init(void);
EXPORT int fini(void);

/** A step on this node. */
struct session {
    pid_t owner; /**< that ran prefork: forked children have a copy of all this */
    struct facts facts;
    struct scratch scratch;
    struct listener listener;
    struct launch launch;
    struct task_env env;
    struct watch *watch;
    struct err refusal; /**< why there is no server; empty: there is one */
};

static struct session *session;

static void slurm_sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level <= LOG_LEVEL_ERROR)
        slurm_abi_error("mpi/muster: %s", text);
    else if (level <= LOG_LEVEL_INFO)
        slurm_abi_info("mpi/muster: %s", text);
    else
        slurm_abi_debug("mpi/muster: %s", text);
}

int init(void)
{
    log_open(slurm_sink, NULL, LOG_LEVEL_DEBUG, NULL);
    return SLURM_ABI_SUCCESS;
}

void *mpi_p_conf_get(void)
{
    return NULL;
}

void *mpi_p_conf_get_printable(void)
{
    return NULL;
}

/* No options: then Slurm has no table for us, and conf_get no answer. See mpi_conf.h. */
void mpi_p_conf_options(void **options, int *count)
{
    (void)options;
    (void)count;
}

/** Says in the daemons' logs what prefork will refuse steps for.
 * @thread main, of slurmctld and slurmd when they start or are reconfigured */
void mpi_p_conf_set(void *table)
{
    struct err err = {0};

    (void)table;
    if (mpi_conf_check(&err) < 0)
        log_error("%s", err.text);
}

/* A step over several components of a heterogeneous job, or over several groups of one. */
static bool several_components(const struct slurm_abi_step_info *step)
{
    struct slurm_abi_step_id id = step->step_id;
    struct slurm_abi_step_layout *own;
    bool several;

    if (id.step_het_comp != SLURM_ABI_NO_VAL)
        return true;
    if (step->het_job_id == 0 || step->het_job_id == SLURM_ABI_NO_VAL || !step->step_layout)
        return false;
    own = slurm_abi_step_layout_get(&id);
    several = own && own->task_cnt != step->step_layout->task_cnt;
    if (own)
        slurm_abi_step_layout_free(own);
    return several;
}

/** @thread srun's main thread */
void *mpi_p_client_prelaunch(const struct slurm_abi_step_info *step, char ***env)
{
    static char none;

    (void)env;
    if (several_components(step)) {
        log_error("muster does not serve heterogeneous steps of several components: start each "
                  "with an srun of its own, or use another --mpi");
        return NULL;
    }
    return &none; /* anything but NULL, which is an error */
}

/** @thread srun's main thread */
int mpi_p_client_fini(void *state)
{
    (void)state;
    return SLURM_ABI_SUCCESS;
}

/* Nothing stays behind. */
static void session_free(struct session *s)
{
    listener_remove(&s->listener);
    scratch_remove(&s->scratch, &s->facts.user);
    task_env_free(&s->env);
    facts_free(&s->facts);
    free(s);
}

static int session_start(struct session *s, struct err *err)
{
    struct boot *boot = &s->facts.boot;

    if (facts_read(&s->facts, err) < 0 || mpi_conf_check(err) < 0 ||
        scratch_make(&s->scratch, s->facts.tmpfs_key, s->facts.tmpfs, boot->label, &s->facts.user,
                     err) < 0 ||
        listener_open(&s->listener, &s->facts, err) < 0)
        return -1;
    boot->tmpdir = strdup(s->scratch.path);
    boot_set(boot, "socket", s->listener.path);
    if (launch_server(&s->launch, &s->facts.user, s->listener.fd, s->facts.node, err) < 0)
        return -1;
    listener_pass(&s->listener);
    if (handshake(&s->launch, boot, &s->env, err) == 0)
        s->watch = watch_start(&s->facts, &s->launch, err);
    if (!s->watch) {
        launch_kill(&s->launch);
        return -1;
    }
    return 0;
}

/** Never fails: of a failed prefork srun is told no more than that it failed, has not even a
 * connection to print it from, and ends with status 0. So the tasks fail instead, who can say why
 * to the user, and the step ends.
 * @thread slurmstepd's main thread, as root or as slurmd's user */
int mpi_p_slurmstepd_prefork(const void *step, char ***env)
{
    struct session *s = calloc(1, sizeof(*s));

    (void)step;
    (void)env;
    if (!s)
        return SLURM_ABI_ERROR;
    s->owner = getpid();
    s->listener.fd = s->launch.control = -1;
    if (session_start(s, &s->refusal) < 0) {
        log_error("%s", s->refusal.text);
        if (s->facts.job != 0)
            s->watch = watch_start(&s->facts, NULL, &s->refusal);
    }
    session = s;
    return SLURM_ABI_SUCCESS;
}

/* Says once a node why there is no server. */
static int refuse(const struct slurm_abi_task_info *task)
{
    if (task->ltaskid == 0)
        log_error("%s", session->refusal.text);
    if (session->watch)
        watch_task(session->watch, 0, getpid());
    errno = ECANCELED; /* slurmstepd logs it */
    return SLURM_ABI_ERROR;
}

/* The server counts ranks as slurmctld does; a step of several components counts otherwise. */
static bool is_ours(const struct slurm_abi_task_info *task, uint32_t slot)
{
    const struct boot *boot = &session->facts.boot;
    const struct boot_node *node = &boot->nodes[boot->node];

    return slot < node->ntasks && task->ntasks == boot->ntasks &&
           node->ranks[slot] == task->gtaskid;
}

/** Overwrites what the user set: two PMIx servers in one environment serve nobody.
 * @thread a task's process between fork and exec, as the user */
int mpi_p_slurmstepd_task(const struct slurm_abi_task_info *task, char ***env)
{
    uint32_t slot = (uint32_t)task->ltaskid;

    if (!session)
        return SLURM_ABI_ERROR;
    if (session->refusal.text[0] != '\0')
        return refuse(task);
    if (!is_ours(task, slot)) {
        log_error("task %u of step %s on node %s is not in the step's layout: muster does not "
                  "serve heterogeneous steps of several components",
                  task->gtaskid, session->facts.boot.label, session->facts.node);
        return SLURM_ABI_ERROR;
    }
    for (char **p = session->env.strings[slot]; p && *p; p++) {
        char *value = strchr(*p, '=');

        *value++ = '\0'; /* this process's own copy */
        slurm_abi_env_overwrite(env, *p, value);
    }
    watch_task(session->watch, slot, getpid());
    return SLURM_ABI_SUCCESS;
}

/** @thread main, of any process that loaded us; also of children forked by slurmstepd */
int fini(void)
{
    struct session *s = session;

    if (!s || s->owner != getpid())
        return SLURM_ABI_SUCCESS;
    session = NULL;
    watch_stop(s->watch);
    launch_end(&s->launch, s->facts.node);
    session_free(s);
    return SLURM_ABI_SUCCESS;
}
