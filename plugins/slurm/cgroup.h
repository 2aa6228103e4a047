/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where muster-server stands among Slurm's cgroups.
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <sys/types.h>

/**
 * Under version 2 of cgroups, moves a process out of this step's cgroup, where it was born: when
 * the tasks have ended, slurmstepd waits there until no process but itself is left, for
 * UnkillableStepTimeout, and only then comes to fini. Does nothing where steps have no such cgroup.
 * @param pid the process, which only root can end until this returns: root moves the process
 *            that has the number by then
 * @return 0, or -1 with the reason in @p err
 * @thread slurmstepd's main thread, as root
 */
int cgroup_leave_step(pid_t pid, struct err *err);

/**
 * Cuts a step's cgroup down to what all jobs share.
 * @param path of /proc/PID/cgroup, "SCOPE/JOB/step_N/slurm"; becomes "SCOPE", or is spoilt
 * @return whether it was such a path
 */
bool cgroup_scope(char *path);
