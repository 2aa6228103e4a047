/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tasks that may wait in libpmix for ever, for a task of their own node that has ended in order.
 *
 * libpmix hands an operation up once all participants of the node have called. A participant that
 * has finalized and left counts as one that is still to call, so the others there wait, whatever
 * became of the operation elsewhere. No host can answer them: they were never handed up. From
 * libpmix 7 on the server has libpmix forget the process that has ended, which helps processes that
 * call after that. Where another node waits for such an operation, it fails. If libpmix has handed
 * up none of the living participants here a while later, this server tells the user, and by
 * `on_task_loss` ends the step.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** An operation that others wait for cannot be done, for a participant here has ended. */
void stranded_note(struct server *server, const struct signature *sig);

/** libpmix has handed an operation up: those here wait no more. */
void stranded_called(struct server *server, enum coll_kind kind, const char *id);

void stranded_free(struct server *server);
