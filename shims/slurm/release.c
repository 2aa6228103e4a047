/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One Slurm release: its structures turned into ours, and our calls into its own.
 *
 * Compiled once for each release, with SLURM_ABI_RELEASE and SLURM_RELEASE_NAME set by meson.build.
 */
#include "shims/slurm/release.h"

#include "shims/slurm/slurm_raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** A flag for killing, which 22.05 and 23.02 lack: tasks that die by it do not count as failed. */
enum { KILL_QUIET = 1 << 10 };

static struct slurm_raw_step_id raw_id(const struct slurm_abi_step_id *id)
{
    return slurm_raw_step_id(id->job_id, id->step_id, id->step_het_comp);
}

static struct slurm_abi_step_id our_id(const struct slurm_raw_step_id *id)
{
    return slurm_abi_step_id(id->job_id, id->step_id, id->step_het_comp);
}

static struct slurm_abi_step_id step_of(const struct slurm_abi_step_info *info)
{
    return our_id(&((const struct slurm_raw_step_info *)info)->step_id);
}

static int stepd_connect(const char *directory, const char *node,
                         const struct slurm_abi_step_id *id, uint16_t *protocol)
{
    struct slurm_raw_step_id raw = raw_id(id);
    return slurm_raw_stepd_connect(directory, node, &raw, protocol);
}

static char *cluster_name(void)
{
    const struct slurm_raw_conf *conf = slurm_raw_conf_lock();
    char *name = conf && conf->cluster_name ? strdup(conf->cluster_name) : NULL;
    slurm_raw_conf_unlock();
    return name;
}

static char *auth_info(void)
{
    const struct slurm_raw_conf *conf = slurm_raw_conf_lock();
    char *info = conf && conf->authinfo ? strdup(conf->authinfo) : NULL;
    slurm_raw_conf_unlock();
    return info;
}

static int layout_get(const struct slurm_abi_step_id *id, struct slurm_abi_step_layout *layout)
{
    struct slurm_raw_step_id asked = raw_id(id);
    struct slurm_raw_step_layout *raw = slurm_raw_step_layout_get(&asked);
    if (!raw)
        return -1;
    *layout = (struct slurm_abi_step_layout){.node_cnt = raw->node_cnt,
                                             .task_cnt = raw->task_cnt,
                                             .node_list = raw->node_list,
                                             .tasks = raw->tasks,
                                             .tids = raw->tids,
                                             .raw = raw};
    return 0;
}

static void layout_free(void *raw)
{
    slurm_raw_step_layout_free(raw);
}

static int ask_steps(uint32_t job, uint32_t step, struct slurm_raw_step_records **raw)
{
#if SLURM_ABI_RELEASE < 0x190b
    return slurm_raw_get_steps(0, job, step, raw, SLURM_ABI_SHOW);
#else
    struct slurm_raw_step_id id = slurm_raw_step_id(job, step, SLURM_ABI_NO_VAL);

    return slurm_raw_get_steps(&id, raw, SLURM_ABI_SHOW);
#endif
}

static int get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records *records)
{
    struct slurm_raw_step_records *raw = NULL;
    if (ask_steps(job, step, &raw) != SLURM_ABI_SUCCESS)
        return -1;
    *records = (struct slurm_abi_step_records){.now = raw ? raw->last_update : 0, .raw = raw};
    if (!raw || raw->count == 0 || !raw->steps)
        return 0;
    records->steps = calloc(raw->count, sizeof(*records->steps));
    if (!records->steps) {
        slurm_raw_free_steps(raw);
        errno = ENOMEM;
        return -1;
    }
    records->count = raw->count;
    for (uint32_t i = 0; i < raw->count; i++) {
        const struct slurm_raw_step_record *from = &raw->steps[i];
        records->steps[i] = (struct slurm_abi_step_record){.step_id = our_id(&from->step_id),
                                                           .num_cpus = from->num_cpus,
                                                           .num_tasks = from->num_tasks,
                                                           .user_id = from->user_id,
                                                           .srun_host = from->srun_host,
                                                           .srun_pid = from->srun_pid,
                                                           .start_time = from->start_time,
                                                           .nodes = from->nodes};
    }
    return 0;
}

static void steps_free(void *raw)
{
    slurm_raw_free_steps(raw);
}

static int allocation_lookup(uint32_t job, struct slurm_abi_allocation *allocation)
{
    struct slurm_raw_allocation *raw = NULL;
#if SLURM_ABI_RELEASE < 0x1a05
    int rc = slurm_raw_allocation_lookup(job, &raw);
#else
    int rc = slurm_raw_allocation_lookup(slurm_raw_step_id(job, SLURM_ABI_NO_VAL, SLURM_ABI_NO_VAL),
                                         &raw);
#endif

    if (rc != SLURM_ABI_SUCCESS || !raw)
        return -1;
    *allocation = (struct slurm_abi_allocation){.num_cpu_groups = raw->num_cpu_groups,
                                                .cpus_per_node = raw->cpus_per_node,
                                                .cpu_count_reps = raw->cpu_count_reps,
                                                .node_cnt = raw->node_cnt,
                                                .node_list = raw->node_list,
                                                .raw = raw};
    return 0;
}

static void allocation_free(void *raw)
{
    slurm_raw_free_allocation(raw);
}

static long time_left(uint32_t job)
{
#if SLURM_ABI_RELEASE < 0x1a05
    return slurm_raw_time_left(job);
#else
    return slurm_raw_time_left(slurm_raw_step_id(job, SLURM_ABI_NO_VAL, SLURM_ABI_NO_VAL));
#endif
}

static int kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails)
{
    uint16_t flags = fails ? 0 : KILL_QUIET;
#if SLURM_ABI_KILL == 1
    (void)flags;
    return slurm_raw_kill(job, step, sig);
#elif SLURM_ABI_KILL == 2
    return slurm_raw_kill(job, step, sig, flags);
#else
    struct slurm_raw_step_id id = slurm_raw_step_id(job, step, SLURM_ABI_NO_VAL);

    return slurm_raw_kill(&id, sig, flags);
#endif
}

static void free_conf(void *conf)
{
    slurm_raw_free_conf(conf);
}

extern const struct slurm_release SLURM_RELEASE_NAME;
const struct slurm_release SLURM_RELEASE_NAME = {.number = SLURM_ABI_RELEASE,
                                                 .api = SLURM_ABI_API,
                                                 .step_of = step_of,
                                                 .stepd_connect = stepd_connect,
                                                 .cluster_name = cluster_name,
                                                 .auth_info = auth_info,
                                                 .free_conf = free_conf,
                                                 .layout_get = layout_get,
                                                 .layout_free = layout_free,
                                                 .get_step = get_step,
                                                 .steps_free = steps_free,
                                                 .allocation_lookup = allocation_lookup,
                                                 .allocation_free = allocation_free,
                                                 .time_left = time_left,
                                                 .kill_step = kill_step};
