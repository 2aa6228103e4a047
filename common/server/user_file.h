/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Files for the step's user, in directories of the user's. They are opened with the user's rights,
 * as the server has no others.
 * @thread any
 */
#pragma once

#include <stddef.h>

/** Makes the file @p name, mode 0600, in @p dir. One that is there is not written over: it may be
 * another run's, or no file at all. @param dir an absolute path
 * @return a descriptor, or -1 with errno set */
int user_file_make(const char *dir, const char *name);

/** Opens the directory @p below of @p home, and makes what is missing of it, mode 0700. A home of
 * another user is refused (EPERM): what is in it may lead anywhere.
 * @param below relative @param path set to its absolute path
 * @return a descriptor, or -1 with errno set */
int user_dir_make(const char *home, const char *below, char *path, size_t cap);

/** Removes files of a directory whose names match @p pattern (fnmatch(3)): those that are older
 * than @p days, and the oldest of more than @p max. What others remove at the same time is no
 * error.
 * @param dir a descriptor, closed */
void user_dir_thin(int dir, const char *pattern, size_t max, int days);
