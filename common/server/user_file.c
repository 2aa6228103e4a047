/* SPDX-License-Identifier: BSD-3-Clause */
/* A file for the step's user. */
#include "common/server/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int user_file_make(const char *dir, const char *name)
{
    errno = EINVAL;
    int at = dir[0] == '/' ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (at < 0)
        return -1;
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    close(at);
    errno = saved;
    return fd;
}
