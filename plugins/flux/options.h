/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a job's user has set for muster, on its way to the server.
 */
#pragma once

#include "common/launch/boot.h"
#include "shims/flux/shell_abi.h"

/**
 * Puts the job's variables and the shell's options for muster into the boot message.
 * @return 0, or -1 with the reason in @p err
 * @thread the shell's, in shell.init or later
 */
int options_take(struct boot *boot, flux_shell_t *shell, struct err *err);
