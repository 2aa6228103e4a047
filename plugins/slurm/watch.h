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
#include "plugins/slurm/notes.h"

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

/** @return where tasks tell it of themselves @thread any */
const struct notes *watch_notes(const struct watch *watch);

/** Ends the thread and the server, and the step if that has died unnoticed and in use. Frees
 * @p watch, which may be NULL. */
void watch_stop(struct watch *watch);
