/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A signal for processes of the step (PMIx_Job_control): each server sends it to those of its own
 * node that run. All servers hear of signals in one order. SIGSTOP pauses: until SIGCONT, or the
 * end of these processes, deadlines of operations stand still on all nodes (server_stand_still()).
 * SIGKILL aborts (PMIx_Abort): also a process that starts later; and the step goes on. What follows
 * is what follows when a task is lost (tasks.h).
 * @thread the loop's
 */
#pragma once

#include "common/server/server.h"

/** Has the tasks of the step that are in @p set get a signal, on all nodes. */
void signals_send(struct server *server, const struct procset *set, int sig);

/** Has those of this node alone get it. */
void signals_here(struct server *server, const struct procset *set, int sig);

/** The launcher has told of the process of task @p slot: it is stopped if it is to be paused, and
 * killed if it has been aborted. */
void signals_task_started(struct server *server, uint32_t slot);

/** It has ended: a pause of it ends, too. */
void signals_task_ended(struct server *server, uint32_t slot);

/** So have the tasks of a server of the step. */
void signals_server_lost(struct server *server, uint32_t node);

/** A debugger releases the task in @p slot, which was stopped at its exec. */
void signals_continue(struct server *server, uint32_t slot);

/** Takes a server's word of a signal, perhaps its own. */
void signals_receive(struct server *server, const void *body, size_t len);
