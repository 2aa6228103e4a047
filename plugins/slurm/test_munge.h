/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * munged, played for tests: a credential is a number, and what is in it stands in a table.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { PROTOCOL = 42 << 8 /* of Slurm 24.11 */ };

/** The agent's thread uses it, too. */
extern struct munge {
    _Atomic unsigned made, verified; /**< credentials so far */
    _Atomic bool takes_twice; /**< as a Slurm does that was built for several slurmds on a node */
    /** What others do while munged makes a credential, and while it says what one holds; or NULL.
     */
    void (*_Atomic while_asked)(void);
    void (*_Atomic while_verified)(void);
    _Atomic uid_t writer; /**< whose credentials it makes */
    _Atomic uid_t reader; /**< for whom; 0: for the writer */
} munge;
