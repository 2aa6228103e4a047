/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The layout of a step, and a task's processors, as text.
 * @return all: a string that the caller frees
 * @thread any
 */
#pragma once

#include "common/nspace/nspace.h"

#include <sched.h>

/** The ranks of a node: "0,2,4" (PMIX_LOCAL_PEERS). */
char *map_ranks(const struct boot_node *node);

enum { MAP_ALL_APPS = -1 };

/** The names of an application's nodes, or with MAP_ALL_APPS of all: "c01,c02" (PMIX_NODE_LIST). */
char *map_nodes(const struct boot *boot, int64_t app);

/** The processors of a cpu_set_t: "0-3,8" (PMIX_CPUSET). @param size of the set in bytes */
char *map_cpus(const cpu_set_t *set, size_t size);

/** The ranks in ANL notation (PMIX_ANL_MAP): "(vector,(0,2,4))" puts four ranks on each of two
 * nodes from node 0 on; further triples go on from there. Where a whole sequence of triples
 * repeats, as in cyclic layouts, it stands once: readers begin again at its end. */
char *map_anl(const struct nspace *ns);
