/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How a process becomes the job's user for good.
 *
 * Raw system calls: the C library's wrappers would signal the other threads that the launcher had
 * and the forked child has not.
 */
#include "common/launch/identity.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where both exist, the calls without 32 take 16-bit ids. */
#ifdef SYS_setresuid32
#define SETGROUPS SYS_setgroups32
#define SETRESGID SYS_setresgid32
#define SETRESUID SYS_setresuid32
#else
#define SETGROUPS SYS_setgroups
#define SETRESGID SYS_setresgid
#define SETRESUID SYS_setresuid
#endif

int identity_become(const struct identity *id)
{
    if (!id->drop)
        return 0;
    /* To the kernel, -1 means "leave as it is". */
    if (id->uid == (uid_t)-1 || id->gid == (gid_t)-1) {
        errno = EINVAL;
        return -1;
    }
    if (syscall(SETGROUPS, id->ngroups, id->groups) < 0 ||
        syscall(SETRESGID, id->gid, id->gid, id->gid) < 0 ||
        syscall(SETRESUID, id->uid, id->uid, id->uid) < 0)
        return -1;
    if (id->uid != 0 && syscall(SETRESUID, 0, 0, 0) == 0) {
        errno = EPERM;
        return -1;
    }
    return 0;
}
