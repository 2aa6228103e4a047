/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The steps of this user, as slurmctld lists them.
 * @thread all of it: the scout's, but for scout_list_free()
 */
#pragma once

#include "plugins/slurm/rm_slurm.h"

/** A component of a step of this user. */
/**< A component of a step of this user. */
struct scout_seen {
    uint32_t job, step, component;
    uint64_t start; /**< s since the epoch, of slurmctld's clock */
    char *nodes;    /**< a hostlist; owned, as is srun_host */
    char *srun_host;
    uint32_t srun_pid;
};

/** A step, named by its first component; borrowed from the list. */
struct step {
    const struct scout_seen *first;
    uint64_t start; /**< when slurmctld started it, as its address has it: s since the epoch */
};

/** Asks slurmctld for the list, and keeps it in place of the last one. Blocks.
 * @return whether it answered */
bool scout_list(struct scout *scout);

/** All steps of the list, the oldest first. @return how many; the caller frees @p steps, NULL when
 * out of memory */
uint32_t scout_list_steps(const struct scout *scout, struct step **steps);

/** Whether two components are of one step: of one job, or started by one srun in a heterogeneous
 * job. */
bool scout_same_step(const struct scout_seen *a, const struct scout_seen *b);

/** For qsort(), of struct step: the older one first. */
int scout_by_age(const void *left, const void *right);

/** @thread the loop's, after the scout's has ended, besides the scout's */
void scout_list_free(struct scout *scout);
