/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The slurmds of all nodes: threads of musterrun's first process that carry messages.
 *
 * A process asks the slurmd of its own node (standin.h); the message is written to the socket on
 * the other node as slurmd writes it, one connection each: the sender's uid, the length, the bytes,
 * end of file. Faults are made here, but to messages for other runs of the user (runs.h) none.
 */
#pragma once

#include "common/util/err.h"
#include "shims/slurm/standin/slurm_standin.h"
#include "shims/standin/run.h"

struct slurmd;

/** Makes the sockets; requests wait in them. @param step,faults borrowed for good
 * @return NULL with @p err */
struct slurmd *slurmd_open(const struct standin_step *step, struct faults *faults, struct err *err);

/** Puts the path of a node's socket into @p path. */
void slurmd_path(const struct standin_step *step, const struct standin_node *node, char *path,
                 size_t cap);

/** Closes the sockets in a forked child, so that they are dead when their owner is. */
void slurmd_leave(struct slurmd *slurmd);

/** Starts the threads. @param events write end of a pipe @return 0, or -1 with @p err */
int slurmd_start(struct slurmd *slurmd, int events, struct err *err);

/** From now on the step has ended, and a request to kill it is answered so. */
void slurmd_ended(struct slurmd *slurmd);
