/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a task ended, which slurmstepd reaps.
 */
#pragma once

#include <stdint.h>

struct task_end {
    uint32_t sig;  /**< 0: it has exited */
    uint32_t code; /**< its exit code, or BOOT_CODE_UNKNOWN (boot.h) */
};

/** Asks how a process ended, and leaves it for slurmstepd to reap, which may have been faster.
 * @param pidfd of a process that has ended
 * @return how it ended
 * @thread any; may wait for a tenth of a second */
struct task_end task_end_of(int pidfd);
