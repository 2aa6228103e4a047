/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster-status --stacks: what the ranks of a step are doing, on this node or on all.
 */
#pragma once

#include "common/status/find.h"

#include <json-c/json.h>
#include <sys/resource.h>

/** The state of this node's server, with the stacks of its tasks. Root becomes the step's owner for
 * it, and stays that: what the owner's programs have in their files and memory is read by others'
 * parsers.
 * @param memory limit of the programs that take stacks
 * @return {"nodes":[STATE],"silent":[]}, which the caller puts; NULL with the reason in @p err
 * @thread one, which lives on */
json_object *stacks_here(const struct find *find, const struct rlimit *memory, struct found *found,
                         struct err *err);

/** The same of all nodes: has this program started on each of them, with --pieces.
 * @param program path of this program
 * @param found its owner is set */
json_object *stacks_everywhere(const struct find *find, const char *program,
                               const struct rlimit *memory, struct found *found, struct err *err);

/** What the program says where it was started so. @param state taken over; NULL: the reason is in
 * @p why @return 0, or -1: it cannot be written */
int stacks_write_pieces(json_object *state, const char *why);
