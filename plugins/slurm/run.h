/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which run of a step this is, and how it is ended.
 *
 * A job that is requeued starts its steps again under the same numbers, while a node that was
 * given up may come back with the step that it still has. Each run is told by when slurmctld
 * started it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** When slurmctld has started a step of one job: its first and its last component. All zero: not
 * known. */
struct step_run {
    uint64_t first, last; /**< s since the epoch */
};

/** Asks slurmctld. @return 0, or -1 with errno set: ENOENT when it has no such step
 * @thread any */
int step_run_read(uint32_t job, uint32_t step, struct step_run *run);

/**
 * Asks slurmctld to kill the tasks of a step, if it still is this run of it.
 * @param fails whether tasks that die by it count as failed; Slurm before 23.11 cannot do without
 * @return 0, or -1 with errno set: SLURM_ABI_ALREADY_DONE when this run is not there any more, or
 * is not known
 * @thread any
 */
int step_run_kill(uint32_t job, uint32_t step, const struct step_run *run, bool fails);

/** @return the text that step_run_next() reads, for @p n runs; the caller frees it, or NULL */
char *step_run_list(const struct step_run *runs, uint32_t n);

/** @param list moved behind the run that it begins with @return that run, or none: all zero */
struct step_run step_run_next(const char **list);
