/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Sets of processes in PMIx's form.
 */
#pragma once

#include "common/nspace/nspace.h"
#include "common/tracker/values/proclist.h"

#include <pmix_common.h>
#include <stdbool.h>

/** Fills @p info with @p key and an array of the members, ascending, wildcards expanded.
 * @param set  not empty
 * @param info constructed; its value is owned by it afterwards @thread any */
void procs_load(pmix_info_t *info, const char *key, const struct procset *set);

/** The same with a list, in its order. */
void procs_load_list(pmix_info_t *info, const char *key, const struct proclist *list);

/** The same of a set with PMIX_EVENT_CUSTOM_RANGE, and a whole namespace is a wildcard: the event
 * has this array on its way to each server.
 * @param own the own namespace, which finds the others
 * @thread the loop's */
void procs_load_range(pmix_info_t *info, const struct nspace *own, const struct procset *set);
