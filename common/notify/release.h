/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A debugger releases processes that wait for it (PMIX_DEBUGGER_RELEASE). libpmix gives them the
 * event; here is noted that they wait no more.
 */
#pragma once

#include "common/notify/event.h"

/** Notes what an event of that code releases on this node. @param event its source, range and
 * targets @thread the loop's */
void release_note(struct server *server, const struct notification *event);
