/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers that are not there any more: those that were lost, and servers that have ended in order.
 *
 * What waits for one that has ended in order fails with the status that it would have given, as its
 * tasks have ended. All that it had sent has been taken before it went: see server_leave().
 * @thread the loop's, all of it
 */
#pragma once

#include "common/server/server.h"

/** Fails what waits for server @p node, and tells of the loss. @param why one clause, borrowed;
 * NULL: other servers alone have noticed it */
void departed_lost(struct server *server, uint32_t node, const char *why);

/** The same of a server that has left in order. @param early a task has failed there before
 * PMIx_Init: the user is told when an operation waits for it, now or later */
void departed_left(struct server *server, uint32_t node, bool early, const char *why);
