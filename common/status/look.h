/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Takes the stacks of the tasks of this node, by eu-stack or gdb.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/resource.h>

/** Puts "stack", or "no_stack" with the reason, into each task that has a process. Several programs
 * run at a time, each for some seconds at most, and all together for less than ten.
 * @param node a server's state; its user is ours
 * @param memory limit of the programs
 * @return whether all that was started has ended by itself, so that nothing is left stopped
 * @thread one, which lives on */
bool look_at_tasks(json_object *node, const struct rlimit *memory);
