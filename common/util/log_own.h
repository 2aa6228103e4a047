/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sink that writes to a file of the user's, beside the sink that an admin has chosen.
 *
 * The file gets more than the admin's log: a user who looks for a fault wants each transition, and
 * no admin wants those of all users.
 */
#pragma once

#include "common/util/err.h"
#include "common/util/log.h"

/** Room for the name of a file, with its end. */
#define LOG_OWN_PATH_SIZE 1024

/** A file, and the other sink. */
struct log_own {
    int fd;                    /**< -1: no file */
    enum log_level level;      /**< of the file */
    enum log_level next_level; /**< of the other sink */
    log_sink_fn *next;         /**< NULL: standard error */
    void *arg;                 /**< of that */
};

/** Opens the file as the process's own user: a regular file of that user, which is made where it is
 * missing, or a terminal; no symbolic link.
 * @param path absolute; each "%n" stands for @p node
 * @return 0, or -1 with @p err set */
int log_own_open(struct log_own *own, const char *path, const char *node, struct err *err);

/** A sink for log_open(), with a struct log_own as its argument; the level there is
 * log_own_level(). @thread any */
void log_own(void *arg, enum log_level level, const char *text);

/** @return the level of the sink that takes more */
enum log_level log_own_level(const struct log_own *own);

/** Closes the file. */
void log_own_close(struct log_own *own);
