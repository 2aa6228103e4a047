/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tools take from their user: a user's name, and where servers' directories are.
 */
#ifndef MUSTER_STATUS_USER_H
#define MUSTER_STATUS_USER_H

#include "common/conf/conf_file.h"

#include <stdbool.h>
#include <sys/types.h>

/** Reads a user's name, or number on a node that does not know the name. @return whether it is one
 * @thread any, one at a time */
bool user_read(const char *text, uid_t *uid);

/** @return where muster.json has the servers' directories made, "/tmp" if nothing is said; NULL
 * with the reason in @p err @thread any, one at a time */
const char *user_dir(char tmpdir[static CONF_PATH_SIZE], struct err *err);

#endif
