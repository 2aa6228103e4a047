/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The tasks of this node, for a tool that looks at their processes.
 */
#pragma once

#include "common/status/find.h"

#include <json-c/json.h>

/** Asks this node's server for its state, and for its guard (find_guarded()). Root becomes the
 * step's owner, and stays that: what the owner has in files and memory is read by others' parsers.
 * @param found its guard is to be ended by find_let_go()
 * @param node set to the server's state, which is a part of what is returned
 * @return {"nodes":[STATE],"silent":[]}, which the caller puts; NULL with the reason in @p err, and
 * then nothing is guarded */
json_object *here_begin(const struct find *find, struct found *found, json_object **node,
                        struct err *err);

/** @return the element of a state with one, or NULL */
json_object *here_only_node(json_object *state);

/** @return the path of this program, for other nodes, in @p path of @p cap bytes; NULL with the
 * reason in @p err */
const char *here_program(char *path, size_t cap, struct err *err);
