/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Checkpoints: processes of the step are asked for one, and whoever asks is answered when each of
 * them says that it is done.
 *
 *     PMIx_Job_control ── checkpoint_begin() ── ASK_CHECKPOINT, to each node with a target
 *       │ there: PMIX_JCTRL_CHECKPOINT, or a signal, to the targets of the node
 *       │ they raise PMIX_JCTRL_CHECKPOINT_COMPLETE: checkpoint_done()
 *     the call is answered: when all nodes have answered, or with the first failure
 *
 * A node fails when one of its targets has finalized or ended, or has not done it by the deadline;
 * its server then says which. That deadline stands still during a pause. A call that was cancelled
 * is answered at once, and its server asks the same nodes to forget it: the same question without a
 * deadline.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/notify/answer.h"
#include "common/server/server.h"

#include <pmix_common.h>
#include <stdbool.h>

enum {
    CHECKPOINT_S = 600,          /**< for all to be done, unless the caller says otherwise */
    CHECKPOINT_S_MAX = 1 << 30,  /**< more is taken for that */
    CHECKPOINT_NAME_MAX = 255,   /**< bytes of an id */
    CHECKPOINT_NODE_LATE_S = 10, /**< after the deadline a server that says nothing has failed */
};

/** What is asked for; all of it borrowed. */
struct checkpoint_order {
    const char *id, *request; /**< request: PMIX_JOB_CTRL_ID, or NULL */
    const pmix_proc_t *caller;
    const struct procset *set; /**< processes of the step; canonical, not empty */
    uint32_t timeout;          /**< seconds, not 0 */
    int sig;                   /**< what the processes get; 0: the event */
};

/** @param answer given later */
void checkpoint_begin(struct server *server, const struct checkpoint_order *order,
                      struct answer answer);

/** Serves ASK_CHECKPOINT (ask.h); @p arg is the server. */
void checkpoint_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

/** Ends calls of this server that wait: they get PMIX_ERR_JOB_CANCELED, and the processes need not
 * do it any more. @param request their PMIX_JOB_CTRL_ID; "": all that this process has made
 * @return whether there was one @thread the loop's; the view's is fine */
bool checkpoints_cancel(struct server *server, const char *request, const char *nspace,
                        uint32_t rank);

/** A task of this node has raised PMIX_JCTRL_CHECKPOINT_COMPLETE: the checkpoint that it was asked
 * for first is done. */
void checkpoint_done(struct server *server, uint32_t rank);

/** It has finalized or ended. */
void checkpoint_task_gone(struct server *server, uint32_t rank);

/** Frees what other servers have asked for. @thread the loop's, after libpmix ended */
void checkpoints_free(struct server *server);
