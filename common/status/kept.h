/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a step that has ended has left of its counts (common/server/totals_keep.h).
 */
#pragma once

#include "common/util/err.h"

#include <json-c/json.h>
#include <sys/types.h>

/** Reads such a file, of which nothing is taken for granted.
 * @param step the file's name, if there is a "/" in it; else a step's, whose file is in the
 * directory that MUSTER_STATS_DIR names, or where "stats": "keep" has it
 * @param uid whose step it is, as whom root reads it, and whom root is from then on; -1: ours. Root
 * believes no HOME, but the node's list of users
 * @param owner set to the file's
 * @return what stats_read() takes, the caller's; NULL with one sentence in @p err; NULL without one
 * if @p step is a step's name, and nothing was kept of it */
json_object *kept_read(const char *step, uid_t uid, uid_t *owner, struct err *err);
