/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The parts of the program wide: a real muster-server of node 0 of a wide step, whose other nodes
 * are not there, and one real client.
 */
#pragma once

#include "common/launch/boot.h"

#include <stdbool.h>
#include <sys/types.h>

/** Lays out @p nnodes nodes of @p tasks tasks each, in the order of ranks. Ends the program when
 * memory ends. @param tmpdir the server's directory, borrowed */
void step_lay_out(struct boot *boot, uint32_t nnodes, uint32_t tasks, const char *tmpdir);

/** What a process has of memory, in KiB. */
struct memory {
    long peak; /**< resident at most, since memory_reset() */
    long now;  /**< resident */
    long own;  /**< resident, and no other process's as well */
};

/** @return that of process @p pid; 0: not known */
struct memory memory_of(pid_t pid);

/** The peak of @p pid counts from now on. */
void memory_reset(pid_t pid);

/** The client: PMIx_Init, what it has taken, one rank's keys, PMIx_Finalize. It waits for a byte
 * on descriptor 0 after each. @return the exit status */
int client_main(void);

/** Microseconds of a clock that only goes forward. */
int64_t client_now_us(void);
