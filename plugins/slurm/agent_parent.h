/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * In the srun of a spawned step: the agent that has started it (agent_children.h).
 */
#pragma once

#include "common/transport/wire.h"
#include "shims/slurm/slurm_abi.h"

/** The step exists now: tells that agent so, and makes the terminal this srun's standard error.
 * @return the socket to that agent, or -1: a user has started this srun
 * @thread srun's, before the agent's own is there */
int agent_parent_take(const struct slurm_abi_step_id *step);

/** Passes on the rest of an AGENT_STARTED of the own step. @param parent of agent_parent_take()
 * @return whether this step is a spawned one @thread the agent's */
bool agent_parent_tell(int parent, const struct wire_in *body);
