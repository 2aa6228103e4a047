/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * MUSTER_TRACE: a file of each server with a slice for each of its calls, in Chrome's trace format
 * (docs/late.md). It is the user's, in a directory of the user's choice, and is opened with the
 * user's rights, as the server has no others. What is to be written stays in memory until the
 * server leaves: no operation waits for a file.
 * @thread the loop's, all of it
 */
#pragma once

#include "common/tracker/engine.h"

enum { TRACE_MAX = 32768 /**< calls: the last ones */ };

struct server;

/** Begins one, if the step's user has asked for it. */
void trace_open(struct server *server);

/** engine_env.ended of the server @p arg. */
void trace_ended(void *arg, const struct engine_ended *ended);

/** Makes the file and writes it. Where that fails the user is told. */
void trace_write(struct server *server);

/** @return whether it is written, all of it */
bool trace_is_written(const struct server *server);

/** Appends to a line for the user where the traces of @p n of @p all servers are, or why there is
 * none; nothing when no trace was asked for. */
void trace_line(const struct server *server, uint32_t n, uint32_t all, char *buf, size_t cap);

void trace_close(struct server *server);
