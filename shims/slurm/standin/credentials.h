/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What munged does in musterrun: gives out credentials, and says once on each node what is in one.
 * @thread any of the first process
 */
#pragma once

#include "shims/slurm/standin/slurm_standin.h"

#include <sys/types.h>

/** @param uid of the user that asks @param reader uid of the user that may read it
 * @return 0 or an error number */
int credentials_make(uid_t uid, uid_t reader, const void *data, uint32_t len, unsigned char *token);

/** As munged, each node's reads a credential once. @param reader uid of the user that asks @param
 * node where
 * @param data STANDIN_CREDENTIAL_MAX bytes @return 0 or an error number */
int credentials_read(uid_t reader, uint32_t node, const unsigned char *token, uint32_t *uid,
                     void *data, uint32_t *len);
