/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What servers that talk to each other must have alike, and what becomes of a server that has not.
 *
 * Each server says it ahead of its first frame to another one. Within a step, a difference ends the
 * step: its operations could wait for ever, or end differently on its nodes. A server of another
 * step counts as lost.
 * @thread the loop's
 */
#pragma once

#include "common/transport/wire.h"

/* link_env's; @p arg is the server */
void greeting_write(void *arg, uint32_t node, struct wire_out *greeting);
bool greeting_fits(void *arg, uint32_t from, const void *greeting, size_t len);
