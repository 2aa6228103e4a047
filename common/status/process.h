/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which process of a task is the user's program. What the resource manager has started may be a
 * shell, or what starts a container, and the program is its child.
 */
#pragma once

#include "common/util/proctab.h"

/** @param tab of this node, as it is now
 * @param pid what the resource manager has started
 * @return the first process, it or one that it has started, that has libpmix in its memory; where
 * none has, the last one of the line in which each has one child
 * @thread any */
pid_t process_of_task(const struct proctab *tab, pid_t pid);
