/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A signal for processes of the step (PMIx_Job_control): each server sends it to those of its own
 * node that run. All servers hear of signals in one order.
 */
#ifndef MUSTER_SERVER_SIGNALS_H
#define MUSTER_SERVER_SIGNALS_H

#include "common/server/server.h"

/** Has the tasks of the step that are in @p set get a signal, on all nodes. SIGKILL counts as an
 * abort of theirs (abort.h): it also meets a task that the launcher has not told of yet.
 * @thread the loop's */
void signals_send(struct server *server, const struct procset *set, int sig);

/** Takes another server's word of it. @thread the loop's */
void signals_receive(struct server *server, const void *body, size_t len);

#endif
