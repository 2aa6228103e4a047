/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A step that a task has spawned: the agent in musterrun starts musterrun again, as it starts srun,
 * with the options that srun has. It runs in the directory of the first musterrun, whose slurmds
 * carry its messages, and holds a connection to one of them as long as the step is there.
 */
#pragma once

#include "shims/slurm/standin/slurm.h"

/** Says in our environment where the steps that are spawned from here on belong. After the tasks'
 * environment was copied. @return 0, or -1 with @p err */
int joined_announce(const struct standin_step *step, struct err *err);

/** standin_rm.joins and .join */
bool joined_is(char **argv);
int joined_read(struct run *run, int argc, char **argv);

/** Takes the step's signals, from now on. @param events write end of a pipe
 * @return 0, or -1 with @p err */
int joined_start(int events, struct err *err);

/** In a forked child: the connection is the first process's alone. */
void joined_leave(void);

/** Removes what the step has left in the directory. */
void joined_clean(const struct standin_step *step);
