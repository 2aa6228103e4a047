/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers that are not there any more: those that were lost, and servers that have ended in order.
 *
 * Of one that has ended in order the last messages may still be under way here, in the RM's hands
 * or unread in a socket, and the result of an operation among them: see server_leave(). So such a
 * server counts as gone a moment later. What waits for it then fails with the status that it would
 * have given, as its tasks have ended. @thread the loop's, all of it
 */
#pragma once

#include "common/server/server.h"

/** At once, or as soon as its last messages must have come, fails what waits for server @p node,
 * and tells of the loss. @param why one clause, borrowed; NULL: other servers alone have noticed it
 */
void departed_lost(struct server *server, uint32_t node, const char *why);

/** The same of a server that says that it has left in order. @param early a task has failed there
 * before PMIx_Init: the user is told when an operation waits for it, now or later */
void departed_left(struct server *server, uint32_t node, bool early, const char *why);

/** A server of another step has ended with its step. It is lost as soon as its last messages must
 * have come. */
void departed_ended(struct server *server, uint32_t node);

/** Forgets the servers whose time has not come. */
void departed_free(struct server *server);
