/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Connections that close without PMIx_Finalize while the task's own process goes on.
 *
 * The task's own connection (process/conns.h): its program has ended, and what goes on is a shell
 * that had started it. If it does not connect again, no other process of the step can have an
 * answer from that rank. So after CUT_MS the task counts as lost.
 *
 * A connection beside that: a program that the task has started has ended. libpmix goes on as if it
 * had not been there, but the rank may have taken part in an operation by that program. The user is
 * told once.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

enum {
    CUT_MS = 5000,        /**< for the task to connect again, or to end */
    CUT_BESIDE_MS = 1000, /**< for the step to end, in which such programs end, too */
};

/** The task's own connection has closed. */
void cut_own(struct server *server, uint32_t slot);

/** A connection beside that has closed. */
void cut_beside(struct server *server, uint32_t slot);
