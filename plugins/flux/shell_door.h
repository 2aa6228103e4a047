/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A door (common/launch/door.h) in the job shell: watched by the shell's reactor, and told to
 * tasks.
 * @thread the shell's only one, all of it
 */
#pragma once

#include "common/launch/door.h"
#include "shims/flux/shell_abi.h"

/** All zero where there is none. */
struct shell_door {
    uid_t user;                 /**< the job's */
    void (*knocked)(void *arg); /**< a task asks for PMIx; called once */
    void *arg;
    struct door door;
    flux_watcher_t *watcher; /**< NULL: there is no door, or a process has knocked */
    bool is_open;
};

/** @param door with user, knocked and arg, until shell_door_close()
 * @param port 0: any that is free
 * @return 0, or -1 with the reason in @p err */
int shell_door_open(struct shell_door *door, flux_t *h, uint16_t port, struct err *err);

/** Gives the door's address to a task that is about to start. @return 0, or -1; logged */
int shell_door_tell(const struct shell_door *door, const char *nspace, flux_shell_task_t *task);

void shell_door_close(struct shell_door *door);
