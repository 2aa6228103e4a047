/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The directory of one musterrun: DIR/NODE is the spool directory of a node, DIR/NODE/tmp its
 * TmpFS.
 *
 * Every process of a run but servers and tasks holds the lock in it. A directory whose lock is
 * free belongs to a run that was killed with all its processes; the next run removes it.
 */
#pragma once

#include "common/util/err.h"
#include "shims/standin/standin.h"

#include <sys/types.h>

/** Removes what killed runs left, makes a directory with one of each node below it, and puts its
 * name into @p step. A joined step has the directory of the run that it joins, and does not remove
 * it.
 * @return 0, or -1 with @p err */
int rundir_make(struct standin_step *step, struct err *err);

/** @param path of a run's directory @return whether it is the run that was looked for */
typedef bool rundir_fn(const char *path, void *arg);

/** Calls @p fn for the directories of runs of @p owner below @p tmp, dead ones too, until it
 * returns true. It passes over what belongs to another user or others could write to, because any
 * user may give a directory in /tmp such a name. @return whether @p fn has returned true. @thread
 * any */
bool rundir_each(const char *tmp, uid_t owner, rundir_fn *fn, void *arg);

/** Removes the run's directory, if it is still there. */
void rundir_remove(const struct standin_step *step);

/** Removes the directory of a node and, after the last one, the run's. The processes of the nodes
 * call it, in case the first process was killed. */
void rundir_remove_node(const struct standin_step *step, const struct standin_node *node);
