/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sets of processes in PMIx's form.
 */
#ifndef MUSTER_NSPACE_PROCS_H
#define MUSTER_NSPACE_PROCS_H

#include "common/tracker/values/procset.h"

#include <pmix_common.h>
#include <stdbool.h>

/** Fills @p info with @p key and an array of the members, ascending, wildcards expanded.
 * @param info constructed; its value is owned by it afterwards
 * @return false when out of memory
 * @thread any */
bool procs_load(pmix_info_t *info, const char *key, const struct procset *set);

#endif
