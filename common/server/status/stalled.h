/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reports of what has waited for stall_report seconds: to the log, and the first one to the user.
 * @thread the loop's
 */
#pragma once

#include "common/server/server.h"

/** Reports that something waits. The first report of the step is an error, which a launcher shows
 * to the user, with the command that shows more, if stall_terminal is "once". Each server sends
 * its first report to the head of the view, which shows one.
 * @param server a struct server, as of ask_env
 * @param s seconds that it has waited
 * @param text what waits, and for whom */
void stalled(void *server, uint64_t s, const char *text);

/** The same, of an operation. Before the first report is shown, some of the servers that are
 * missing are asked for their state (ASK_STATUS), so that the report says which other operation
 * they wait in: two ranks with two ids of one group wait in two operations, for ever.
 * @param server a struct server, as of engine_env
 * @param nodes the @p n servers that are missing, as far as that is known; borrowed */
void stalled_operation(void *server, uint64_t s, const char *text, const uint32_t *nodes,
                       uint32_t n);

/** Takes another server's first report. */
void stalled_receive(struct server *server, const void *body, size_t len);
