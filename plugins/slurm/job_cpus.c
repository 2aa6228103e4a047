/* SPDX-License-Identifier: BSD-3-Clause */
/* How many processors of a job are free. slurmctld's record of a step has what the step holds: by
 * default that is all of its nodes, however few its tasks are. */
#include "plugins/slurm/job_cpus.h"

#include "common/util/log.h"
#include "plugins/slurm/job_nodes.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>

static int64_t all_of(uint32_t job)
{
    struct job_nodes nodes;
    int64_t n = 0;
    if (job_nodes_read(job, &nodes) != 0)
        return -1;
    for (uint32_t i = 0; i < nodes.n; i++)
        n += nodes.nodes[i].cpus;
    job_nodes_free(&nodes);
    return n;
}

static int64_t held_of(uint32_t job, job_cpus_shares_fn *shares, void *arg)
{
    struct slurm_abi_step_records *records = NULL;
    int64_t n = 0;
    if (slurm_abi_get_step(job, SLURM_ABI_NO_VAL, &records) != SLURM_ABI_SUCCESS)
        return -1;
    for (uint32_t i = 0; records != NULL && i < records->count; i++) {
        const struct slurm_abi_step_record *record = &records->steps[i];
        if (record->step_id.job_id == job && record->step_id.step_id < SLURM_ABI_STEPS_END &&
            !shares(arg, job, record->step_id.step_id))
            n += record->num_cpus;
    }
    if (records != NULL)
        slurm_abi_free_steps(records);
    return n;
}

int64_t job_cpus_free(uint32_t job, job_cpus_shares_fn *shares, void *arg)
{
    int64_t all = all_of(job), held = all >= 0 ? held_of(job, shares, arg) : -1;
    if (held < 0) {
        log_debug("slurmctld does not tell which processors of job %u are free: %s", job,
                  slurm_abi_strerror(errno));
        return -1;
    }
    log_debug("job %u has %lld processors, its steps %lld", job, (long long)all, (long long)held);
    return all > held ? all - held : 0;
}
