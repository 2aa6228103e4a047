/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The allocation that the step runs in, from slurmctld.
 */
#pragma once

#include "common/launch/boot.h"
#include "common/util/err.h"

/**
 * Fills in boot->allocation and the nodes' slots; takes a round trip to slurmctld for each job.
 * Where slurmctld does not tell of the allocation of one, a warning says so and nodes and slots of
 * all stay unknown: the step can run without.
 * @param boot with the nodes of the step
 * @param jobs the job ids of its components
 * @return 0, or -1 with the reason in @p err: out of memory
 * @thread slurmstepd's main thread, in prefork
 */
int allocation_read(struct boot *boot, const uint32_t *jobs, uint32_t njobs, struct err *err);
