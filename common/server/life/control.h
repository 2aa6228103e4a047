/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the launcher says on the control socket: boot.h.
 * @thread the loop's
 */
#pragma once

#include "common/server/server.h"

/** Reads the launcher's messages and does what they say; ends the loop when the launcher has shut
 * its side. @param fd, what of libevent @param arg the server */
void control_ready(evutil_socket_t fd, short what, void *arg);

/** The task in @p slot is gone, for this server. @param sig signal number, or 0 @param code exit
 * code */
void control_task_gone(struct server *server, uint32_t slot, uint32_t sig, uint32_t code);
