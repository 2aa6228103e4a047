/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Finds the steps of namespaces of which a call has only the name: opens server.seeks (seek.h) with
 * what this server knows, and with the resource manager, which looks for a step.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

void strangers_open(struct server *server);

/** Server @p node of another step is gone: it will not introduce itself. */
void strangers_lost(struct server *server, uint32_t node);

/** Closed before: seeks_close(). */
void strangers_close(struct server *server);
