/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which ranks run on which node of the step, all its components together, from slurmctld.
 */
#pragma once

#include "common/util/err.h"
#include "plugins/slurm/facts.h"

/**
 * Fills in the nodes and tasks of facts->boot, and facts->jobs. Each component is an application.
 * @param facts with job, step, component, node and user
 * @param env   of the step's tasks, or NULL. It is the user's, and read for hints only: whether the
 *              step is over several components of a heterogeneous job, and which jobs they are.
 * @return 0, or -1 with the reason in @p err
 * @thread slurmstepd's main thread, in prefork
 */
int layout_read(struct facts *facts, char *const *env, struct err *err);
