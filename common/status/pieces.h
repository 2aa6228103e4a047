/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One answer out of what a program says on each node of a step.
 *
 * The outputs of several nodes may come by one pipe, of which the resource manager keeps lines
 * together that are short. So each node's answer, an object of JSON as find.h has it, goes in
 * pieces, a line each, with the name of its node.
 * @thread any, unless said
 */
#pragma once

#include "common/status/reach.h"
#include "common/util/err.h"

#include <json-c/json.h>
#include <stdio.h>
#include <sys/resource.h>

/** Writes a node's answer in pieces. @return 0, or -1: it cannot be written */
int pieces_write(FILE *out, const char *node, const char *text);

/** Answers that come. All zero is none. */
struct pieces {
    struct pieces_node *nodes; /**< owned */
    size_t n, bytes;
};

/** Takes a line that came, without its end; one that is no piece is passed over.
 * @return 0, or -1: all of it is too long, or memory ran out */
int pieces_take(struct pieces *pieces, const char *line);

/** Frees what was taken. @return {"nodes":[...],"silent":[...]} of all answers that are whole,
 * which the caller puts */
json_object *pieces_end(struct pieces *pieces);

/** Runs the command lines of @p reach, several at a time, and gathers what comes. Nodes that said
 * nothing are among the silent ones.
 * @param ms until they are ended
 * @param memory limit of the programs
 * @return the same as pieces_end(), or NULL with the reason in @p err @thread one, which lives on
 */
json_object *pieces_run(const struct reach *reach, int ms, const struct rlimit *memory,
                        struct err *err);
