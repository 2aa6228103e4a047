/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Watches the server and the tasks while the step runs.
 */
#ifndef MUSTER_SLURM_WATCH_H
#define MUSTER_SLURM_WATCH_H

#include "common/launch/launch.h"
#include "common/util/err.h"
#include "plugins/slurm/facts.h"
#include "plugins/slurm/listener.h"

#include <stdint.h>
#include <sys/types.h>

struct watch;

/**
 * Starts a thread that
 * - logs what the server writes to its standard error,
 * - ends the step when the server dies or a task is refused, since tasks would wait for ever,
 * - tells the server how each task ended.
 * @param facts borrowed until watch_stop()
 * @param launch borrowed for the thread alone; NULL: no server could be started, and the thread
 *        ends the step as soon as a task of ours is there, before others wait for it
 * @param listener borrowed for the thread alone, which closes it when the server dies; NULL with
 *        @p launch
 * @return NULL with the reason in @p err
 * @thread slurmstepd's main thread
 */
struct watch *watch_start(const struct facts *facts, struct launch *launch,
                          struct listener *listener, struct err *err);

/**
 * Has a task's end watched, and the task end with slurmstepd; the first one's directory is that of
 * all. Waits until the server knows of all tasks of the node, within seconds.
 * @param slot its number on this node
 * @thread the task's process between fork and exec, as the user
 */
void watch_task(const struct watch *watch, uint32_t slot, pid_t pid);

/** Has the step ended, since a task cannot be served and the others would wait for it.
 * @thread the task's process between fork and exec, as the user */
void watch_refused(const struct watch *watch);

/** Ends the thread and the server, and the step if that has died unnoticed. Frees @p watch, which
 * may be NULL. */
void watch_stop(struct watch *watch);

#endif
