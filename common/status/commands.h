/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Commands that run at the same time, whose lines come to our own outputs, until all have ended.
 */
#pragma once

#include "common/status/reach.h"
#include "common/util/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/** How a command runs. */
struct command_plan {
    char *const *argv; /**< up to a NULL */
    char *const *env;  /**< NULL: ours */
    const char *tag;   /**< "[TAG] " is put before each line; NULL: nothing; 79 bytes at most */
    uid_t owner;       /**< whose it is to be, when we are root */
    int death;         /**< the signal that it gets when we are killed */
    const struct rlimit *memory; /**< its limit; NULL: ours */
    /** Gets each line that it writes; NULL: our standard output does. */
    void (*take)(void *arg, const char *line);
    void *arg;
};

enum { COMMANDS_LATE = 256 /**< instead of a status: they were ended at the deadline */ };

/** Runs the command lines of a place to their end, as commands_run() does. A Ctrl-C comes to us
 * alone: srun would ask for a second one. One that ends them ends us, too, where lines are taken.
 * @param how for all of them; its command, environment, owner and death are the place's
 * @param ms until they are ended; 0: no limit
 * @return the greatest status, COMMANDS_LATE, or -1 with the reason in @p err @thread the only one
 */
int commands_reach(const struct reach *reach, const struct command_plan *how, int ms,
                   struct err *err);

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
