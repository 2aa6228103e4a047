/** @file
 * The tasks of this node, and what is done when one is lost.
 *
 * A task that ends between PMIx_Init and PMIx_Finalize is lost. Operations that need it fail at
 * once. A moment later, when it is known whether all tasks of the node ended together (then the
 * RM ended the step, and says so itself), the loss is told, and by the setting `on_task_loss` the
 * step is ended.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_TASKS_H
#define MUSTER_SERVER_TASKS_H

#include "common/server/server.h"

/** The task in @p slot has ended. @param sig signal number, or 0 @param code exit code */
void tasks_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code);

/** @return 0, or PMIX_ERR_PROC_TERM_WO_SYNC when a participant on this node has ended */
int32_t tasks_status(const struct server *server, const struct signature *sig);

/** Whether a loss has been told already, or there is none to wait for any more: libpmix notices a
 * lost client before the launcher tells us how it ended, and who reads the job's output should
 * find the reason before its consequences. Asked when a failure of local participants is handed
 * up; after a false, server_resume() is called within milliseconds. */
bool tasks_loss_is_told(struct server *server);

/** @return milliseconds until tasks_tick() is due, or -1 for never */
int64_t tasks_next(const struct server *server, int64_t now);
void tasks_tick(struct server *server, int64_t now);

#endif
