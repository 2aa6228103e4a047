/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Whether the user has seen what the server has logged. The launcher carries the lines to the
 * terminal, and a program that goes on may end before that: then the resource manager shows the
 * user nothing of the node any more. So the answer to a call that is there to show a line
 * (PMIx_Log), or whose failure is told only by a line, waits until the launcher has taken the line.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/util/timers.h"

struct server;

/** An answer that waits; all zero at first, but for the first two. */
struct shown_wait {
    void (*done)(struct shown_wait *wait);
    struct server *server;
    struct timer patience;
    struct shown_wait *next;
};

/** Calls wait->done once, when the launcher has taken all that was logged before, or has not said
 * so for 2 s; at once where it cannot be asked. */
void shown_await(struct shown_wait *wait);

/** The wait is over, and done is not called any more. No harm to one that never began. */
void shown_forget(struct shown_wait *wait);

/** The launcher has taken what was logged before the first @p n questions. */
void shown_take(struct server *server, uint32_t n);
