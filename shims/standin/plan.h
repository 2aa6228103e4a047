/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The step that follows from the command line: how many tasks and nodes it has, and which task is
 * where.
 */
#pragma once

#include "shims/standin/habits.h"
#include "shims/standin/run.h"

enum { NODES_MAX = 999, TASKS_MAX = 10000, EXIT_USAGE = 2 };

/** What the options say. */
struct numbers {
    struct run *run;         /**< which the others are for; borrowed */
    long nodes, tasks, seed; /**< 0: not given */
    long timeout;            /**< s */
    long slots;              /**< processors of each node; 0: not said */
    long plane;              /**< ranks that are dealt out together; 0: as many as a node has */
    const char *arbitrary;   /**< the nodes of all ranks, or NULL */
    long conf_node;          /**< that has another muster.json */
    const char *conf;        /**< which; NULL: none has */
    struct hosts hosts;      /**< none: as the other options say */
};

/** Lays out numbers->run. @param programs what stands behind the options
 * @return as options_read(), with a message */
int plan(struct numbers *numbers, char **programs);

/** Says what is wrong with an option. @return EXIT_USAGE */
int plan_wrong(const char *what, const char *value, const char *expected);
