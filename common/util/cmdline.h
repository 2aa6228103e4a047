/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The command line of a process of ours, as the kernel has it.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/** Reads the arguments of a process, the first one included, and joins them by blanks: what is in
 * them stays as it is, empty ones too, so that they cannot always be told apart again.
 * @param max bytes of the text; of a longer one nothing is read
 * @return the text, which the caller frees, or NULL: there is no such process or no longer, it is
 * another user's or may not be looked at (it has other rights than its user), it has no arguments
 * or more than @p max bytes of them
 * @thread any */
char *cmdline_read(pid_t pid, size_t max);
