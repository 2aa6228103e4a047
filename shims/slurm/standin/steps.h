/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The steps of musterrun's job: that of its command line, and the ones that tasks have spawned,
 * each of which is a musterrun of its own in the same directory (joined.h). slurmctld's part.
 * @thread any
 */
#pragma once

#include "shims/slurm/standin/slurm_standin.h"

struct steps;

/** @param first of the command line; borrowed for good @return NULL: out of memory */
struct steps *steps_new(const struct standin_step *first);

/** Places the tasks of a new step and remembers it.
 * @param node_of by rank; the nodes that were asked for, if there are any; is filled otherwise
 * @param fd takes each signal for the step as an int32_t; borrowed until steps_remove()
 * @return 0 with @p added, or an error number */
int steps_add(struct steps *steps, const struct standin_join *join, uint32_t *node_of, int fd,
              struct standin_joined *added);
void steps_remove(struct steps *steps, uint32_t step);

/** When a step was started. @return 0 or an error number */
int steps_start_of(struct steps *steps, uint32_t job, uint32_t step, int64_t *start);

/** @return the steps of this run as lines "JOB STEP START NODE,NODE", malloc()ed; NULL: out of
 * memory */
char *steps_list(struct steps *steps);

/** Signals a spawned step. @return 0, or an error number: there is none of that number */
int steps_signal(struct steps *steps, uint32_t job, uint32_t step, int32_t sig);
