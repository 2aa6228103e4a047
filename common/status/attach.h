/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster-attach: runs a command beside the tasks of this node.
 * @thread any, unless said
 */
#pragma once

#include "common/status/find.h"

#include <stdint.h>

/** @return whether a text is a list of ranks, such as "0-3,5" */
bool attach_is_ranks(const char *list);

/** The process that a command runs beside. */
struct attach_place {
    const char *node;
    int64_t rank; /**< -1: it runs once for the node */
    int64_t pid;
};

/** @return whether a command names a rank's number or process: it is to run once a rank */
bool attach_is_for_ranks(char *const argv[]);

/** Puts in what %n, %r and %p stand for, and % for %%. @return malloc()ed, or NULL: out of memory
 */
char *attach_expand(const char *word, const struct attach_place *place);

/** Runs a command on this node, as the step's owner: once, or once for each rank
 * (attach_is_for_ranks) that has a process, all at the same time. Its lines come to our own
 * outputs, with "[NODE] " or "[RANK] " before them. SIGTERM, SIGINT and SIGHUP end it, with all
 * that it has started.
 * @param ranks only beside these, as of attach_is_ranks(); NULL: all
 * @return the greatest status of all: an exit status, 128 and a signal, or 127: it could not be
 * started; 0 where none of the ranks is; -1 with the reason in @p err
 * @thread the only one */
int attach_here(const struct find *find, const char *ranks, char *const argv[], struct err *err);
