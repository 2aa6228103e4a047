/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How the application of this node was started: PMIX_WDIR and PMIX_APP_ARGV, where the launcher
 * learns them too late for the boot message. All tasks of a node are of one application.
 */
#pragma once

#include "common/nspace/nspace.h"

#include <sys/types.h>

/** Tells libpmix where the application's tasks start (PMIX_WDIR).
 * @thread the loop's, before any task is a client; waits for PMIx's */
void command_wdir(const struct nspace *ns, const char *wdir);

/**
 * Looks by what command line a task runs, and tells libpmix (PMIX_APP_ARGV). When that cannot be
 * seen, the application has no such key.
 *
 * libpmix hands out what it has when its first client asks, which is the next that it reads from
 * it. Only some releases wait for our answer to the upcall before. But what that upcall hands
 * to PMIx_server_register_nspace is done before anything else is read, and an array of an
 * application adds to what was known of it; only where LIBRARY_APP_GROWS.
 * @param pid of the task that is the first one of this node to connect, or 0: not known
 * @thread PMIx's, in the upcall of that
 */
void command_argv(const struct nspace *ns, pid_t pid);
