/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A file for the step's user, in a directory of the user's choice. It is opened with the user's
 * rights, as the server has no others; the user removes it.
 */
#ifndef MUSTER_SERVER_USER_FILE_H
#define MUSTER_SERVER_USER_FILE_H

/** Makes the file @p name, mode 0600, in @p dir. One that is there is not written over: it may be
 * another run's, or no file at all. @param dir an absolute path
 * @return a descriptor, or -1 with errno set @thread any */
int user_file_make(const char *dir, const char *name);

#endif
