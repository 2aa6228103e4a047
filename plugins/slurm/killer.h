/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Ends the step when it cannot be served, from a thread of its own: slurmctld takes its time to
 * answer, or does not answer at all, and nothing else waits for it.
 */
#pragma once

#include "plugins/slurm/facts.h"

#include <poll.h>

struct killer;

/**
 * Starts the thread, which asks slurmctld to end the step, kills the tasks of this node, and tries
 * again until it has ended.
 * @param facts read before this returns
 * @param tasks pidfds of those that live, copied
 * @return NULL when there can be no thread; logged
 * @thread the watch's, with all signals blocked
 */
struct killer *killer_start(const struct facts *facts, const struct pollfd *tasks, size_t ntasks);

/**
 * Gives it so many seconds to reach slurmctld; then no further try. Waits a second for an answer
 * that is on its way, then lets the thread go, which ends with the process. Frees @p killer, which
 * may be NULL.
 * @thread slurmstepd's main thread
 */
void killer_stop(struct killer *killer, unsigned wait_s);
