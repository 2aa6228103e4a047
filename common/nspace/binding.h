/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which processors a task of this node was bound to at its start.
 */
#pragma once

#include "common/nspace/nspace.h"

#include <sys/types.h>

/** Looks where the RM has bound a task and tells libpmix (PMIX_CPUSET, PMIX_LOCALITY_STRING). A
 * task that may run wherever this server may is not bound: it gets neither key.
 * @param slot of the task on this node
 * @param pid of the task, from the launcher
 * @thread the loop's; waits for PMIx's */
void binding_learn(struct nspace *ns, uint32_t slot, pid_t pid);

/** Tells libpmix what follows from the binding of all tasks of this node: PMIX_PACKAGE_RANK, of
 * tasks that are bound to processors of one package.
 * @thread the loop's, once all were learned; waits for PMIx's */
void binding_complete(const struct nspace *ns);
