/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The environment of an srun that is started beside a step, and of other commands of Slurm: Slurm's
 * own variables of that step would be options of it.
 */
#pragma once

/** @param env up to a NULL; or NULL, which is empty
 * @return a copy without what is the step's, malloc()ed with its texts; NULL: out of memory
 * @thread any */
char **srun_env(char *const *env);
