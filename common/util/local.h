/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Unix sockets within a node: one's own, and which process is at the other end.
 * @thread any
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/** Makes a socket of that name, which only this user may connect to.
 * @return a non-blocking descriptor, to be listened on, or -1 with errno set */
static inline int local_bind(const char *dir, const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (snprintf(addr.sun_path, sizeof addr.sun_path, "%s/%s", dir, name) >=
        (int)sizeof addr.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        (bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && chmod(addr.sun_path, 0600) == 0))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/** @return the uid of the process that has made the other end of @p fd, as the kernel noted it
 * then, or (uid_t)-1, which no process has */
static inline uid_t local_peer(int fd)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.uid : (uid_t)-1;
}

/** @return the id of that process, or 0: it is not known here */
static inline pid_t local_peer_pid(int fd)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}
