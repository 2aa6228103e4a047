/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The tasks of this node, and what is done when one is lost.
 *
 * A task that ends between PMIx_Init and PMIx_Finalize is lost. Operations that need it fail at
 * once. A moment later, when it is known whether all tasks of the node ended together (then the
 * RM ended the step, and says so itself), the RM is asked, where it can say that, whether it ends
 * the step. If it does, the loss is no news for the user. Else the loss is told, and by the setting
 * `on_task_loss` the step is ended.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** The task in @p slot has ended. @param sig signal number, or 0 @param code exit code */
void tasks_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code);

/** @return what an operation fails with that has a participant which has ended:
 * PMIX_ERR_PROC_TERM_WO_SYNC, of a construct PMIX_GROUP_CONSTRUCT_ABORT where libpmix gives that */
int32_t tasks_loss_status(const struct server *server, enum coll_kind kind);

/** @return 0, or that when a participant on this node has ended */
int32_t tasks_status(const struct server *server, const struct signature *sig);

/** Adds the participants on this node that have ended to @p gone. */
void tasks_gone(const struct server *server, const struct signature *sig, struct procset *gone);

/** An operation has failed for @p gone: notes for which processes of other nodes tasks here may now
 * end.
 * @param status what it has failed with: PMIX_ERR_LOST_CONNECTION of a lost server's tasks */
void tasks_bereft(struct server *server, int32_t status, const struct procset *gone);

/** Whether a task was lost within the last second. */
bool tasks_just_lost(const struct server *server);

/** Whether a loss among @p participants has been told already, or there is none to wait
 * for any more: libpmix notices a lost client before the launcher tells us how it ended, and who
 * reads the job's output should find the reason before its consequences. Asked when a failure of
 * local participants is handed up; after a false, server_resume() is called within a second. */
bool tasks_loss_is_told(struct server *server, const struct procset *participants);

/** Whether losses here are not told yet since another node's server is about to tell what they
 * came of. */
bool tasks_await_cause(const struct server *server);

/** Whether the user is to read here what another node says of the step's end: not when the RM has
 * just ended the tasks here, too. */
bool tasks_tell_for_others(const struct server *server);

/** The server of another node has died. Its launcher has the step ended, unless it was killed with
 * it. Then no other server would, as long as no operation waits for that node. So this server does
 * it in a second, if tasks here use PMIx and that is the setting. */
void tasks_host_died(struct server *server);

/** Prepares server::kill_rest. */
void tasks_open(struct server *server);

/** Does now what is to be done at a later time: this server is about to end. */
void tasks_hurry(struct server *server);

/** Whether losses here are not told yet since the RM is to say first whether it has killed the
 * tasks. */
bool tasks_await_rm(const struct server *server);

/** Tells the losses that are not told yet, now. */
void tasks_tell_rest(struct server *server);

/** Whether every task of this node ended by a signal: most likely the RM has ended the step, and
 * no other node waits for what they did. @thread the loop's */
bool tasks_all_killed(const struct server *server);

/** Whether a task of this node has ended PMIx in order. The launcher's word on the end of the last
 * ones may be missing: when the server is told to leave, a connected one has been killed.
 * @thread the loop's */
bool tasks_one_ended_well(const struct server *server);
