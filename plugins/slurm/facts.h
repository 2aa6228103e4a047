/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What slurmstepd's plugin has to know of its step, from sources that the user cannot influence.
 */
#pragma once

#include "common/launch/boot.h"
#include "common/launch/identity.h"
#include "common/util/err.h"
#include "plugins/slurm/run.h"

#include <inttypes.h>

/** Name of the socket for messages, by job, step and run: those of the first component on the nodes
 * of all, so that they have one address. */
#define FACTS_SOCKET "muster.%u.%u.%" PRIx64

enum { FACTS_JOBS_MAX = 128 /**< components of a heterogeneous job: Slurm's own bound */ };

/** A step on this node. */
struct facts {
    char *node;            /**< Slurm's name of this node */
    char *spool;           /**< slurmd's spool directory here */
    char *tmpfs;           /**< where temporary directories are made */
    const char *tmpfs_key; /**< the setting that it is from, "TmpFS" or "tmpdir" */
    uint32_t job;          /**< job id; a heterogeneous job's component has its own */
    uint32_t step;         /**< step id, the same in all components */
    uint32_t component;    /**< which one of a heterogeneous step, or SLURM_ABI_NO_VAL */
    uint32_t njobs;        /**< length of jobs: 1, unless the step is over several components */
    uint32_t jobs[FACTS_JOBS_MAX]; /**< of its components, in order; the first one names the step */
    struct step_run runs[FACTS_JOBS_MAX]; /**< of each: which run it is; the first one's is that of
                                             the step */
    struct identity user;                 /**< whose step it is */
    struct boot boot; /**< for the server: all but tmpdir and the setting "socket" */
};

/**
 * Finds out all of it; takes three round trips to slurmctld, and up to four for each component.
 * @param facts filled in; facts_free() it also after an error
 * @param env   of the step's tasks, which is the user's: see layout.h
 * @return 0, or -1 with the reason in @p err
 * @thread slurmstepd's main thread, in prefork
 */
int facts_read(struct facts *facts, char *const *env, struct err *err);

void facts_free(struct facts *facts);
