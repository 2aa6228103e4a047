/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which of this node's lost tasks is the cause of the loss of the others, and what is said of it.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

/** Says how the task of a slot was lost, as a clause. */
void cause_describe(const struct server *server, uint32_t slot, char *buf, size_t cap);

/** @return whether an RM ends steps by that signal; then the RM says why */
bool cause_may_be_of_rm(uint32_t sig);

/** @return SIGKILL or SIGTERM when all tasks of this node were lost by that signal, and none
 * because it was aborted, else 0. Then the RM has most likely ended them, and says so itself. */
uint32_t cause_common_signal(const struct server *server);

/** @return whether the task only left, while another one of this node has failed */
bool cause_is_follower(const struct server *server, const struct task *task);

/** @return the first of this node's lost tasks, those apart that only left when it failed; or NULL
 */
const struct task *cause_first_lost(const struct server *server);
