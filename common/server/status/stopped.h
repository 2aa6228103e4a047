/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Processes of the step that wait for a debugger, from PMIX_READY_FOR_DEBUG to
 * PMIX_DEBUGGER_RELEASE.
 *
 * Each server counts those of its node, those that have ended, as they are awaited no more, and
 * those that were released. It tells the head of the view when they are the first, or fewer than
 * before, or none of the node is awaited. The head adds the numbers up, and says the sums to all
 * servers when they are the first, all that are to wait, or less than before. So every server knows
 * whether the step is stopped (server::stopped), and can tell the tools on its node when all are
 * ready. The process that has spawned the step asks for that (ASK_READY). All tasks of a server
 * that is gone have ended; a new head is told all anew.
 *
 *     STOPPED    u32 processes that wait, u32 that have ended, but for those, u32 that were
 * released, str PMIX_BREAKPOINT: of the sender's node; said to all: of the step ASK_READY  nothing;
 * the answer, once all are ready: u32 processes, str PMIX_BREAKPOINT
 *
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** The PMIX_BREAKPOINT of PMIX_DEBUG_STOP_ON_EXEC. Such a process is stopped by SIGSTOP, and a
 * release is SIGCONT. */
#define STOPPED_ON_EXEC "exec"

/** Reads which processes are to stop. @return 0, or -1 with what is wrong in @p err */
int stopped_open(struct server *server, struct err *err);

/** The task with that rank, of this node, waits for a debugger, or with STOP_ALL all of the node.
 * @param where PMIX_BREAKPOINT */
void stopped_ready(struct server *server, uint32_t rank, const char *where);

/** A debugger has released the tasks of this node from rank @p first to rank @p last. */
void stopped_release(struct server *server, uint32_t first, uint32_t last);

/** The task with that rank has called PMIx_Init: if it was stopped at its exec, it runs again; a
 * debugger that has attached to it needs no release. */
void stopped_runs(struct server *server, uint32_t rank);

/** Job control has sent a signal, which may have been SIGCONT (signals.h). */
void stopped_signalled(struct server *server);

/** The task in @p slot has ended. */
void stopped_task_ended(struct server *server, uint32_t slot);

/** The view has changed. @param lost,left the servers that are not in it any more */
void stopped_view_changed(struct server *server, const struct ranges *lost,
                          const struct ranges *left);

/** @return how many processes of the step are to wait */
uint32_t stopped_wanted(const struct server *server);

/** Takes the body of a FRAME_STOPPED. */
void stopped_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** Takes the same that was said to all. */
void stopped_said(struct server *server, uint32_t from, const void *body, size_t len);

/** Serves ASK_READY; @p arg is the server. */
void stopped_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

void stopped_close(struct server *server);
