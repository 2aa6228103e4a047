/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The sink that writes to the node's syslog.
 */
#pragma once

#include "common/util/err.h"
#include "common/util/log.h"

/** Where a node's syslog listens. */
#define LOG_SYSLOG_PATH "/dev/log"

/** A connection to syslog. */
struct log_syslog {
    const char *path; /**< borrowed */
    const char *name; /**< borrowed: the program, for the lines */
    int fd;           /**< -1: not connected */
};

/** Connects.
 * @param path a datagram socket, LOG_SYSLOG_PATH but for tests; borrowed
 * @param name borrowed
 * @return 0, or -1 with @p err set and nothing to close */
int log_syslog_open(struct log_syslog *syslog, const char *path, const char *name, struct err *err);

/** A sink for log_open(), with a struct log_syslog as its argument. Errors go to standard error as
 * well, and so does all that syslog does not take: no message is lost, and none is waited for.
 * @thread any */
void log_syslog(void *arg, enum log_level level, const char *text);

/** Closes the connection. */
void log_syslog_close(struct log_syslog *syslog);
