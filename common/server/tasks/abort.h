/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Some processes of the step are aborted (PMIx_Abort), and the step goes on without them: each
 * server kills those of its own node. What follows is what follows when a task is lost (tasks.h).
 * @thread the loop's
 */
#pragma once

#include "common/server/server.h"

/** Has the tasks of the step that are in @p set killed, on all nodes. */
void abort_some(struct server *server, const struct procset *set);

/** The launcher has told of the process of task @p slot: it is killed if it is to be aborted. */
void abort_started(struct server *server, uint32_t slot);

/** Takes another server's word of it. */
void abort_receive(struct server *server, const void *body, size_t len);
