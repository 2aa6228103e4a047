/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The group is the user's own, by what this node knows of users, or else by what the kernel says of
 * a process of theirs.
 */
#include "common/status/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int owner_become(uid_t owner, pid_t task, struct err *err)
{
    char path[32];
    struct stat st;
    if (geteuid() != 0 || owner == 0)
        return 0;
    const struct passwd *user = getpwuid(owner);
    snprintf(path, sizeof path, "/proc/%d", (int)task);
    bool seen = user == NULL && task > 0 && stat(path, &st) == 0 && st.st_uid == owner;
    if (user == NULL && !seen)
        return err_set(err, "this node does not know user %u", (unsigned)owner);
    gid_t gid = user != NULL ? user->pw_gid : st.st_gid;
    if ((user != NULL ? initgroups(user->pw_name, gid) : setgroups(1, &gid)) != 0 ||
        setgid(gid) != 0 || setuid(owner) != 0 || setuid(0) == 0)
        return err_set(err, "cannot become user %u: %s", (unsigned)owner, strerror(errno));
    return 0;
}
