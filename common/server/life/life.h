/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The life of a server, from its boot message to its end.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** Builds the server from its boot message; libpmix is not started yet.
 * @param server all zero but for boot and conf
 * @return 0, or -1 with the reason in @p err; server_close() it either way
 * @thread the loop's */
int server_open(struct server *server, struct err *err);

/** Runs until the launcher shuts its side. @thread the loop's */
void server_run(struct server *server);

/** Looks which libpmix is installed, and loads the back end. @return 0, or -1 with the reason in
 * @p err @thread the loop's */
int server_load(struct server *server, struct err *err);

/** @param ms what bytes under way to other servers may still take, in milliseconds
 * @thread the loop's */
void server_close_backend(struct server *server, unsigned ms);

/** Delivers what other servers have not taken yet, as long as the step is not being ended and for
 * at most timeouts.peer; answers all that still wait, and closes the back end; requests that come
 * later are refused.
 * @param ms what bytes under way to other servers may still take, in milliseconds
 * @thread the loop's, before libpmix ends, which may never come back */
void server_leave(struct server *server, unsigned ms);

/** Frees all. @thread the loop's */
void server_close(struct server *server);
