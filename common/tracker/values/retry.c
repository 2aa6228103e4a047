/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Takes the lost processes out of the set of members, and computes the time that is left for the
 * next try.
 */
#include "common/tracker/values/retry.h"

static int without(struct procset *set, const struct procset *lost)
{
    struct procset rest = {0};
    int rc = procset_except(&rest, set, lost);
    procset_free(set);
    *set = rest;
    return rc;
}

bool retry_without(struct procset *members, struct procset *added, struct procset *gone,
                   const struct procset *lost)
{
    uint64_t before = procset_size(members) + procset_size(added);
    if (without(members, lost) != 0 || without(added, lost) != 0 || procset_unite(gone, lost) != 0)
        return false;
    return members->nparts > 0 && procset_size(members) + procset_size(added) < before;
}

uint32_t retry_timeout(uint32_t timeout, int64_t spent, bool *over)
{
    int64_t left = timeout * 1000ll - spent;
    *over = timeout > 0 && left <= 0;
    return timeout == 0 ? 0 : left <= 0 ? 1 : (uint32_t)((left + 999) / 1000);
}
