/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Puts the traces of a step's servers (server/trace.h) together: their clocks aligned, and an arrow
 * from the node that was last in an operation to the one that decided it.
 */
#pragma once

#include "common/util/err.h"

#include <stddef.h>
#include <stdio.h>

enum { TRACE_FILES_MAX = 4096, TRACE_LATE_US = 1000 /**< no arrow for less */ };

/** Writes one trace in Chrome's format.
 * @param notes gets a line that says how well the clocks were aligned
 * @return 0, or -1 with the reason in @p err */
int trace_merge(FILE *out, FILE *notes, char *const *files, size_t n, struct err *err);
