/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A file with the counts of the whole step, which its first server leaves at the end, and
 * muster-status --stats reads (common/status/kept.h). It is the user's. With MUSTER_STATS_DIR it is
 * in a directory of the user's choice, and the user removes it. With "stats": "keep" it is below
 * the user's home; there each server that leaves one removes the oldest.
 * @thread the loop's
 */
#pragma once

#include "common/server/totals.h"

/** Writes the file, if the step's user has asked for one, and appends to a line for the user which
 * command shows it, or why there is none. */
void totals_keep(struct server *server, const struct totals *totals, char *buf, size_t cap);
