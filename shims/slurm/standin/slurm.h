/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part of musterrun that plays Slurm: srun, and one slurmstepd and slurmd for each node.
 */
#pragma once

#include "shims/slurm/standin/plugin.h"
#include "shims/slurm/standin/slurm_standin.h"
#include "shims/slurm/standin/slurmd.h"
#include "shims/standin/node.h"

#include <stdio.h>

/** Its state in struct run. */
struct slurm_run {
    struct plugin plugin;
    void *client;          /**< the plugin's own, of srun's side */
    struct slurmd *slurmd; /**< NULL: the step has joined another musterrun's */
    int events;
};

/** Puts the path of a slurmstepd's own socket into @p path. @return whether it has room */
static inline bool stepd_path(const struct standin_step *step, const struct standin_node *node,
                              char *path, size_t cap)
{
    return snprintf(path, cap, "%s/%s/%s_%u.%u", step->dir, node->name, node->name, step->job,
                    step->step) < (int)cap;
}

/** slurmstepd's part, in a process of its own; standin_rm.node. */
void stepd_run(struct run *run, uint32_t node, int control);

/** Becomes a task, with the plugin's hook as the last thing before exec.
 * @thread the only one of a forked child */
_Noreturn void task_run(struct node *node, uint32_t slot);
