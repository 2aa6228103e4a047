/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which file this process runs.
 */
#pragma once

#include <stddef.h>

/** Finds the program that this process runs, to be started once more. Where an upgrade has replaced
 * it, that is the new one.
 * @param path at least PATH_MAX bytes; also set when no such program is there any more
 * @return 0, or an error number: the kernel does not say @thread any */
int own_program(char *path, size_t cap);
