/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Processes by their parents. A process that holds children, as a subreaper, finds all that they
 * leave behind.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/** @return how many children @p parent has, zombies left out; the first @p cap are in @p list */
size_t procs_children(pid_t parent, pid_t *list, size_t cap);

/** Kills @p root, a child of ours, and all that descends from it, at one moment as far as they can
 * see: all are stopped first. Nothing of it is reaped meanwhile, so no pid is another process's. */
void procs_kill_tree(pid_t root);

/** Reaps what has ended. Here and below, children in our own process group are left alone: they are
 * another thread's of this process, which waits for them. */
void procs_reap(void);

/** Sends a signal to just those. */
void procs_signal_group(int sig);

/** Kills our children but the @p nkeep in @p keep, those too that we inherit from them, and reaps
 * them. @param ms bound */
void procs_kill_children(const pid_t *keep, size_t nkeep, int ms);
