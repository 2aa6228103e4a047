/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Watches the server and the tasks while the step runs.
 */
#pragma once

#include "common/launch/door.h"
#include "common/launch/handshake.h"
#include "common/launch/launch.h"
#include "common/util/err.h"
#include "plugins/slurm/facts.h"
#include "plugins/slurm/herald.h"
#include "plugins/slurm/listener.h"

#include <stdint.h>
#include <sys/types.h>

struct watch;

/** What is watched, all of it borrowed until watch_stop(). */
struct watched {
    const struct facts *facts;
    struct launch *launch;      /**< NULL: no server could be started */
    struct listener *listener;  /**< closed when the server dies; NULL with launch */
    const struct task_env *env; /**< that of the tasks which the server serves; NULL with launch */
    struct door *door;          /**< for the tasks that it does not serve */
    const struct err *why;      /**< why there is no server; NULL: there is one */
    struct herald *herald;      /**< takes what is logged as a cause; NULL: there is none */
};

/**
 * Starts a thread that
 * - logs what the server writes to its standard error,
 * - ends the step when a task needs a server and there is none: when a task knocks at the door, or
 *   the server dies after tasks have used it, since they would wait for ever,
 * - tells the server how each task ended.
 * @return NULL with the reason in @p err
 * @thread slurmstepd's main thread
 */
struct watch *watch_start(const struct watched *of, struct err *err);

/**
 * Has a task's end watched, and the task end with slurmstepd; the first one's directory is that of
 * all. Waits until the server knows of all tasks of the node, within seconds.
 * @param slot its number on this node
 * @thread the task's process between fork and exec, as the user
 */
void watch_task(const struct watch *watch, uint32_t slot, pid_t pid);

/** The same for a task that no server serves, and that is told of the door.
 * @param why the user is to read; NULL: he does otherwise */
void watch_unserved(const struct watch *watch, const char *why);

/** Has the step ended, since a task cannot be served and the others would wait for it.
 * @param why as above @thread the task's process between fork and exec, as the user */
void watch_refused(const struct watch *watch, const char *why);

/** Ends the thread and the server, and the step if that has died unnoticed and in use. Frees
 * @p watch, which may be NULL. */
void watch_stop(struct watch *watch);
