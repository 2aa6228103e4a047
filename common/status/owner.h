/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Root becomes the owner of a step before anything of the owner's runs or is read.
 */
#pragma once

#include "common/util/err.h"

#include <sys/types.h>

/** Gives up root's rights for good. Nothing is done for others than root.
 * @param task a process of the owner's, whose group counts where the node does not know the user
 * @return 0, or -1 with the reason in @p err @thread before there are others */
int owner_become(uid_t owner, pid_t task, struct err *err);
