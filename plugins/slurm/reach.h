/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a program comes to the nodes of a step under Slurm.
 */
#pragma once

#include "common/status/reach.h"

/** struct place's function: by srun, beside the step. */
int slurm_reach(const char *step, struct reach *reach, struct err *err);

/** The same: the numbers of the caller's steps, by squeue. */
char **slurm_mine(void);
