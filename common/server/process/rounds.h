/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Rounds: tasks that call PMIx_Init again after PMIx_Finalize.
 *
 * libpmix before 7 takes a process out of every operation under way on its node when its connection
 * closes, also when it had finalized in order. So a task that is slow to end one round would be
 * missing from an operation that a quick one has begun in the next: it fails with
 * PMIX_ERR_PARTIAL_SUCCESS, or waits for ever. So connections of the next round wait in the
 * listener's queue until those of the last one have closed:
 *
 *     round 1 runs    no task has finalized as often as every task has connected
 *     it turns        one has: what connects now belongs to round 2 and waits
 *     round 2 runs    all that were connected have closed, or ROUNDS_HOLD_MS have passed
 *
 * A connection that outlives the wait stays open for a reason of its own, as a tool's or that of a
 * task that goes on with one session, and is not waited for again.
 *
 * The same list of connections says whether one of them is congested.
 * @thread PMIx's, unless said
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    ROUNDS_HOLD_MS = 2000,
    ROUNDS_LOOK_MS = 1,        /**< the accepting thread sleeps so long between two looks */
    ROUNDS_SETTLE_MS = 1500,   /**< up to 6.1, libpmix says after a second which has closed */
    ROUNDS_UNREAD_MAX = 65536, /**< bytes that a process may leave in its connection's queue here */
};

/** @param ntasks tasks of this node; 0: libpmix needs no help @thread before libpmix listens */
void rounds_open(uint32_t ntasks);
/** @thread after libpmix ended */
void rounds_close(void);

/** A task has connected, or finalized: counted by its slot on this node. */
void rounds_connected(uint32_t slot);
void rounds_finalized(uint32_t slot);

/** Whether the next connection has to wait; then sleeps for ROUNDS_LOOK_MS before it says so.
 * @thread libpmix's, which accepts */
bool rounds_hold(void);
/** A connection was accepted. @thread libpmix's, which accepts */
void rounds_accepted(int fd);

/** A connection has ended, though libpmix keeps it. */
void rounds_left(int fd);

/** @return whether some process of this node does not read what libpmix sends to it, so that what
 * else is sent would be in memory until it does; or whether one has closed its connection less than
 * ROUNDS_SETTLE_MS ago, as libpmix may not have told whose it was @thread any, while libpmix runs
 */
bool rounds_congested(void);
