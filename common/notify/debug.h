/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Debuggers by PMIx: who is told that processes wait for one (PMIX_READY_FOR_DEBUG).
 *
 * Those are the tools that are connected to a server of the step, whenever they connect, and the
 * process that has spawned the step. Each gets one event of its own, which libpmix keeps until that
 * process registers for the event.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

#include <pmix_common.h>

/** A tool has connected. */
void debug_tool_came(struct server *server, const pmix_proc_t *proc);

/** A process has finalized, or its connection has closed; perhaps it was a tool. */
void debug_tool_gone(struct server *server, const char *nspace, uint32_t rank);

/** All processes that are to wait for a debugger do: tells the tools of this node. */
void debug_ready(struct server *server);

/** Tells @p spawner once all processes of the namespace @p child that are to wait do. */
void debug_await(struct server *server, const pmix_proc_t *spawner, const char *child);

/** The step of another namespace has ended: tells the processes of this node, if the step is that
 * of a debugger's daemons for it (PMIX_EVENT_JOB_END). */
void debug_nspace_ended(struct server *server, const char *nspace);

void debug_close(struct server *server);
