/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes files for the step's user. The user's directories may be in a file system that does not
 * answer. So a thread of its own writes, the loop goes on meanwhile, and what is not written after
 * USER_WRITE_MS is given up: that thread is left behind.
 * @thread the loop's
 */
#pragma once

#include "common/server/server.h"

enum { USER_WRITE_MS = 3000 /**< less than the launcher waits for a server that leaves */ };

/** Makes a file (user_file_make()) and writes it. @param data taken over
 * @param made set to whether the file was made
 * @return 0, or an error number: ETIMEDOUT when the file system does not answer */
int user_write(struct server *server, const char *dir, const char *name, char *data, size_t len,
               bool *made);

/** Keeps a file below the user's home, at BOOT_KEPT, where it takes the place of one of that name,
 * and removes the oldest files there. @param part its name until it is whole @param data taken over
 * @return as above */
int user_keep(struct server *server, const char *home, const char *part, const char *name,
              char *data, size_t len);
