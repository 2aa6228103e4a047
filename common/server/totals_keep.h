/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * MUSTER_STATS_DIR: a file with the counts of the whole step, which its first server leaves at the
 * end, and muster-status --stats reads (common/status/kept.h). It is the user's, in a directory of
 * the user's choice.
 * @thread the loop's
 */
#ifndef MUSTER_SERVER_TOTALS_KEEP_H
#define MUSTER_SERVER_TOTALS_KEEP_H

#include "common/server/totals.h"

/** Writes the file, if the step's user has asked for one, and appends to a line for the user which
 * command shows it, or why there is none. */
void totals_keep(struct server *server, const struct totals *totals, char *buf, size_t cap);

#endif
