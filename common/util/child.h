/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a process sheds that was forked from a launcher: it has the launcher's signals and files.
 * @thread the only one of a forked child
 */
#pragma once

/** All signals have their default action, and none is blocked. */
void child_default_signals(void);

/** Closes all descriptors from @p first on. */
void child_close_from(unsigned first);
