/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Finds the steps of namespaces of which a call has only the name: what steps.c has to tell
 * strangers.c. steps_seek() is in steps.h.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_STRANGERS_H
#define MUSTER_SERVER_STRANGERS_H

#include "common/server/server.h"

/** @return 0, or -1: out of memory */
int strangers_open(struct server *server);

/** A namespace has become known. */
void strangers_learnt(struct server *server);

/** Server @p node of another step is gone: it will not introduce itself. */
void strangers_lost(struct server *server, uint32_t node);

/** @return milliseconds until strangers_tick() is due, or -1 for never */
int64_t strangers_next(const struct server *server);
void strangers_tick(struct server *server);

/** Lets all that waits go on. */
void strangers_go_on(struct server *server);
void strangers_close(struct server *server);

#endif
