/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What plugin and server say to each other before any task starts.
 */
#pragma once

#include "common/launch/boot.h"
#include "common/launch/launch.h"

/** The environment that the server gives to each local task. */
struct task_env {
    uint32_t nslots;
    char ***strings; /**< owned; by slot a NULL-terminated list of "K=V", or NULL */
};

/** @return the milliseconds that a server has until it has answered: half a minute, since a busy
 * node takes its time to load a program, and more for a large step, since libpmix takes its time to
 * register many nodes and processes */
int handshake_patience(const struct boot *boot);

/** Sends the boot message and takes the environments, within handshake_patience().
 * @param env filled in; task_env_free() it also after an error
 * @return 0, or -1 with the reason in @p err
 * @thread the launcher's main thread */
int handshake(struct launch *launch, const struct boot *boot, struct task_env *env,
              struct err *err);

void task_env_free(struct task_env *env);
