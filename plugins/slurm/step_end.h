/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Has slurmctld end a step, and tries until it has ended: for the thread in slurmstepd that does so
 * when muster-server has died (killer.h), and for that in muster-server.
 */
#pragma once

#include "plugins/slurm/run.h"

#include <stdbool.h>

enum {
    STEP_END_JOBS_MAX = 128,    /**< components of a heterogeneous job: Slurm's own bound */
    STEP_END_AGAIN_MS = 1000,   /**< between the first tries that fail */
    STEP_END_SELDOM_MS = 30000, /**< and between later ones, at most */
    STEP_END_LOOK_MS = 10000,   /**< before slurmctld is asked again whether the step has ended */
    STEP_END_BUSY_TRIES = 5,    /**< while the job changes its state, until that is told */
};

/** What slurmctld has answered. */
enum step_end_answer {
    STEP_END_ASKED,   /**< it kills the tasks */
    STEP_END_BUSY,    /**< the job is being requeued, so that its tasks end by themselves, or is
                           suspended */
    STEP_END_REFUSED, /**< it cannot be reached, or does not want to */
};

/** What is to end, all of it borrowed until step_end() returns. */
struct step_end {
    const uint32_t *jobs;  /**< of the step's components */
    struct step_run *runs; /**< of each of them */
    uint32_t njobs, step;
    /** A run that is not known, since slurmctld could not be asked when the step began here, is the
     * one that slurmctld has begun by then: s since the epoch. 0: what is not known has ended */
    uint64_t begun;
    bool hangs; /**< nobody else kills the tasks: the user is told when slurmctld does not */
    bool fails; /**< the job is to count as failed; not after PMIx_Abort with status 0 */
    /** Waits that long before the next try. @return whether to give up */
    bool (*pause)(void *arg, enum step_end_answer answer, unsigned ms);
    void *arg;
};

/** When it does not work it is logged once, and tried again.
 * @return whether the step has ended; false: @p end->pause gave up
 * @thread one that may wait */
bool step_end(const struct step_end *end);
