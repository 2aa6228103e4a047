/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What muster-check has found on all nodes: a table of rows that are the same folded into one, and
 * the faults, each with the nodes that have it.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

/** All zero: empty. */
struct report {
    json_object *nodes;  /**< the answers, in the order in which they came */
    json_object *faults; /**< {"text": …, "nodes": […]} */
    json_object *silent; /**< names of nodes that had not answered when they were looked for */
};

/** Takes a node's answer; another line goes to standard error. */
void report_add(struct report *report, const char *line);

/** Adds a fault of no node in particular. */
void report_fault(struct report *report, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Notes a node that has not answered, if it has not. */
void report_silent(struct report *report, const char *node);

/** Tells the user, on standard error, which nodes are waited for, and the remedy. */
void report_tell_silent(const struct report *report);

/** Adds a fault of those that have not answered since. */
void report_faults_of_silent(struct report *report);

/** Adds a fault for each column in which nodes differ that have to be the same. */
void report_compare(struct report *report);

unsigned report_nodes(const struct report *report);

/** @return whether there is no fault */
bool report_is_right(const struct report *report);

/** Print it, and sort the nodes by name first. */
void report_table(struct report *report);
void report_json(struct report *report);

void report_free(struct report *report);
