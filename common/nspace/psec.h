/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * By what tasks prove to libpmix's server to which user they belong.
 *
 * libpmix's clients open the security modules that PMIX_SECURITY_MODE names. With munge each has a
 * credential made in PMIx_Init, which the server has read, one after the other, before it answers.
 * This server needs none: the kernel has told it whose a connection is (server/process/accept.c).
 */
#pragma once

/**
 * Has a task use psec native, where its server accepts that.
 * @param env NULL-terminated "K=V" strings of libpmix for the task; one of them may be changed in
 *            place, where it becomes shorter
 * @thread any
 */
void psec_choose(char **env);
