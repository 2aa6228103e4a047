/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Events about connections (RFC 0003, PMIx_Connect): to the members of a connection that have
 * registered for the event's code, none to default handlers. Each has PMIX_EVENT_AFFECTED_PROC, and
 * PMIX_CONNECT_ID where the connection has one.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"
#include "common/server/steps/book.h"

#include <pmix_common.h>

/** Tells all @p members of each of them that is of this node: it has connected or disconnected, or
 * asks the others to connect. @param code PMIX_PROC_HAS_CONNECTED and so on */
void connection_tell_of_own(struct server *server, pmix_status_t code, const char *id,
                            const struct procset *members);

/** The task in @p slot of this node has ended: tells the processes that are connected with it
 * (PMIX_ERR_PROC_TERM_WO_SYNC), unless the connect allows that. Of a task that is lost, its own
 * step is told by loss.h. */
void connection_task_ended(struct server *server, uint32_t slot);

/** Process @p rank of another step is lost with its server: tells those here. */
void connection_process_lost(struct server *server, const char *nspace, uint32_t rank);

/** Gives a connection its name, and has libpmix know it; one that has it keeps it.
 * @return 0, or -1, which is logged */
int connection_name(struct server *server, struct book_entry *entry);

/** A disconnect has succeeded. */
void connection_close(struct server *server, const char *id, const struct procset *members);

/** All of another step has ended: connections with it are over. Tells those here that had one open
 * (PMIX_EVENT_JOB_END). */
void connection_nspace_ended(struct server *server, const char *nspace);
