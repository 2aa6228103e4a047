/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * srun's part: the plugin's client side, and the threads that are the slurmds of all nodes.
 */
#include "shims/slurm/standin/joined.h"
#include "shims/slurm/standin/slurm.h"

#include <stdlib.h>
#include <sys/un.h>

/* srun's turn with the plugin. @return its state, or NULL */
static void *prelaunch(struct run *run, const struct plugin *plugin)
{
    struct slurm_raw_step_info info = {
        .het_job_id = SLURM_ABI_NO_VAL,
        .step_id = slurm_raw_step_id(run->step.job, run->step.step, SLURM_ABI_NO_VAL),
    };

    info.step_layout = slurm_raw_step_layout_get(&info.step_id);
    void *state = info.step_layout ? plugin->prelaunch(&info, &run->env) : NULL;
    if (info.step_layout)
        slurm_raw_step_layout_free(info.step_layout);
    return state;
}

static int srun_open(struct run *run, int events, struct err *err)
{
    struct slurm_run *slurm = calloc(1, sizeof(*slurm));
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    if (!slurm)
        return err_set(err, "out of memory");
    run->state = slurm;
    slurm->events = events;
    standin_describe(&run->step, NULL);
    if (!run->step.joined && !(slurm->slurmd = slurmd_open(&run->step, run->faults, err)))
        return -1;
    if (joined_announce(&run->step, err) < 0 ||
        plugin_load(&slurm->plugin, run->plugin_path, err) < 0)
        return -1;
    slurmd_path(&run->step, &run->step.nodes[0], path, sizeof(path));
    slurm_abi_init(path);
    slurm->client = prelaunch(run, &slurm->plugin);
    slurm_abi_env_overwrite(&run->env, "SLURM_SRUN_COMM_HOST", "127.0.0.1"); /* as slurmd does */
    return slurm->client ? 0 : err_set(err, "MPI plugin: prelaunch failed");
}

static int srun_start(struct run *run, struct err *err)
{
    struct slurm_run *slurm = run->state;
    return slurm->slurmd ? slurmd_start(slurm->slurmd, slurm->events, err)
                         : joined_start(slurm->events, err);
}

static void srun_ended(struct run *run, bool nodes)
{
    struct slurm_run *slurm = run->state;
    (void)nodes;
    if (slurm->slurmd)
        slurmd_ended(slurm->slurmd);
}

/* As srun does it, what the plugin says wins. */
static int srun_close(struct run *run)
{
    struct slurm_run *slurm = run->state;
    int status = slurm->plugin.client_fini(slurm->client);
    slurm->plugin.fini();
    if (run->step.joined)
        joined_clean(&run->step);
    return status;
}

const struct standin_rm rm_slurm = {
    .name = "slurm",
    .plugin_path = MUSTER_SLURM_PLUGIN,
    .about = "Slurm " STANDIN_RELEASE,
    .joins = joined_is,
    .join = joined_read,
    .open = srun_open,
    .start = srun_start,
    .ended = srun_ended,
    .close = srun_close,
    .node = stepd_run,
};
