/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The agent in srun: a thread that listens for the servers of srun's step. They tell it with what
 * status the step ends, which becomes srun's, and lines for the user's terminal.
 *
 * srun asks for it once for each component of a step, from several threads, and once each when a
 * component has ended: it is one agent for all of them.
 */
#pragma once

#include "shims/slurm/slurm_abi.h"

/** Starts the agent, if it does not run yet, and sets AGENT_ENV in @p env. Without one the step
 * runs all the same, and its status is Slurm's; that is logged.
 * @thread any of srun's */
void agent_enter(const struct slurm_abi_step_id *step, char ***env);

/** A component has ended. Stops the agent when it was the last one.
 * @return the status that servers have told, 1 to 255; 0: they have told none, and Slurm's is right
 * @thread any of srun's */
int agent_leave(void);
