/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tools take from their user: options, of which all tools have --user, --dir, --version
 * and --help, and where servers' directories are.
 */
#pragma once

#include "common/conf/conf_file.h"
#include "common/status/find.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

/** An option that one tool has. */
struct options_row {
    const char *name;              /**< NULL ends the list */
    int argument;                  /**< no_argument and its like of getopt_long() */
    bool *given;                   /**< set to true */
    const char **text;             /**< set to its argument; NULL where it has none */
    bool (*fits)(const char *arg); /**< whether it may have that argument; NULL: any */
    const char *else_is;           /**< what one that does not fit is: "no list such as 0-3,5" */
};

/** A tool. */
struct options_tool {
    const char *name;  /**< "muster-status" */
    const char *order; /**< "+": options come first; "": anywhere */
    void (*usage)(FILE *out);
    const struct options_row *rows;
};

/** Reads the command line, --user and --dir into @p find, and prints what is wrong with it, or what
 * was asked for. optind is at what follows. @return 0, or the status to end with + 1
 * @thread any, one at a time */
int options_read(const struct options_tool *tool, int argc, char **argv, struct find *find);

/** Prints how to use the tool. @return the status to end with + 1 @thread any */
int options_refuse(const struct options_tool *tool);

/** Where find's texts are that were not given. */
struct options_room {
    char tmpdir[CONF_PATH_SIZE], step[FIND_STEP_MAX + 1];
};

/** Completes @p find: a job's name as servers have it, and the directory where muster.json has the
 * servers' directories made, else "/tmp". @return 0, or -1 with the reason in @p err
 * @thread any, one at a time */
int options_complete(struct find *find, struct options_room *room, struct err *err);

/** Prints the reason. @return the status to end with @thread any */
int options_fail(const char *tool, struct err *err);
