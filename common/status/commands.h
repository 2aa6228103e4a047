/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Commands that run at the same time, whose lines come to our own outputs, until all have ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** How a command runs. */
struct command_plan {
    char *const *argv; /**< up to a NULL */
    char *const *env;  /**< NULL: ours */
    const char *tag;   /**< "[TAG] " is put before each line; NULL: nothing; 79 bytes at most */
    uid_t owner;       /**< whose it is to be, when we are root */
    int death;         /**< the signal that it gets when we are killed */
};

/** @return of which there is one, for @p most commands; NULL: out of memory. SIGTERM, SIGINT,
 * SIGHUP and SIGCHLD are blocked from then on. @thread the only one */
struct commands *commands_new(size_t most);

/** Starts one. @return 0, or -1 with errno set @thread the same */
int commands_start(struct commands *commands, const struct command_plan *plan);

/** Runs all to their end. A command that has ended takes with it all that it has started and that
 * is in its session. SIGTERM, SIGINT and SIGHUP end all, by SIGTERM, and after some seconds by
 * SIGKILL.
 * @return the greatest of their statuses: an exit status, or 128 and a signal @thread the same */
int commands_run(struct commands *commands);

/** @return whether all have ended by themselves @thread the same */
bool commands_were_well(const struct commands *commands);

void commands_free(struct commands *commands);
