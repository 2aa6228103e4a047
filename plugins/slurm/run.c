/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which run of a step this is, and how it is ended.
 *
 * Slurm kills by numbers. So a process that is to end a step first looks whether slurmctld's record
 * still is that of its own run. A job cannot be requeued and start its step again between this look
 * and the kill: that takes seconds. All components of a job's step are of one srun, and are started
 * one after another; so a record of any of them will do.
 */
#include "plugins/slurm/run.h"

#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

int step_run_read(uint32_t job, uint32_t step, struct step_run *run)
{
    struct slurm_abi_step_records *records = NULL;
    *run = (struct step_run){0};
    if (slurm_abi_get_step(job, step, &records) != SLURM_ABI_SUCCESS) {
        if (errno == SLURM_ABI_INVALID_JOB_ID)
            errno = ENOENT;
        return -1;
    }
    for (uint32_t i = 0; records && i < records->count; i++) {
        const struct slurm_abi_step_record *record = &records->steps[i];
        uint64_t start = (uint64_t)record->start_time;
        if (record->step_id.job_id != job || record->step_id.step_id != step)
            continue;
        if (run->first == 0 || start < run->first)
            run->first = start;
        if (start > run->last)
            run->last = start;
    }
    if (records)
        slurm_abi_free_steps(records);
    if (run->first != 0)
        return 0;
    errno = ENOENT;
    return -1;
}

int step_run_kill(uint32_t job, uint32_t step, const struct step_run *run, bool fails)
{
    struct step_run now;
    int rc = step_run_read(job, step, &now);
    if (rc < 0 && errno != ENOENT)
        return -1;
    if (rc == 0 && now.first >= run->first && now.first <= run->last)
        return slurm_abi_kill_step(job, step, SIGKILL, fails) == SLURM_ABI_SUCCESS ? 0 : -1;
    errno = SLURM_ABI_ALREADY_DONE;
    return -1;
}

char *step_run_list(const struct step_run *runs, uint32_t n)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (uint32_t i = 0; out && i < n; i++)
        fprintf(out, "%s%" PRIu64 "-%" PRIu64, i > 0 ? "," : "", runs[i].first, runs[i].last);
    if (out)
        fclose(out);
    return text;
}

struct step_run step_run_next(const char **list)
{
    struct step_run run = {0};
    int len = 0;
    if (sscanf(*list, "%" SCNu64 "-%" SCNu64 "%n", &run.first, &run.last, &len) != 2)
        return (struct step_run){0};
    *list += len + ((*list)[len] == ',');
    return run;
}
