/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Removing what a directory holds, whatever its owner has put there.
 */
#pragma once

/** Removes all that is in the directory @p fd, which it takes over. Links are not followed; what
 * cannot be removed stays. Call it with the rights of the directory's owner only. @thread any */
void empty_dir(int fd);
