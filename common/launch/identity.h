/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The ids of the job's user, and how a process becomes that user for good.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** The job's user, from what the RM knows, not from what anybody claims. */
struct identity {
    uid_t uid;
    gid_t gid;     /**< the job's group, not always the user's first one */
    gid_t *groups; /**< owned; all groups, gid among them */
    size_t ngroups;
    bool drop; /**< we are root and have to become the user; else we are the user already */
};

/** Gives up all rights but the user's, and makes sure that root does not come back. Makes system
 * calls only, so it may be called between fork and exec.
 * @return 0, or -1 with errno set: the caller must end at once
 * @thread the only one of a forked child */
int identity_become(const struct identity *id);
