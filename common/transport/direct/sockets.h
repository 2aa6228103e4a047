/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The system calls by which direct connections are made and used, so that musterrun can do wrong
 * what networks do wrong. @thread the loop's
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

/** Each as the system call of that name; errors are in errno. */
struct sockets {
    int (*connect)(int fd, const struct sockaddr *address, socklen_t len);
    /** Without SIGPIPE. */
    ssize_t (*sendmsg)(int fd, const struct msghdr *message);
    int (*close)(int fd);
};

/** The symbol by which a library that was loaded before the back end gives others. None that is
 * meant for use has it. */
#define SOCKETS_SYMBOL "muster_sockets"

extern const struct sockets sockets_of_kernel;

/** Sends bytes of which the socket has taken none before. @return whether it has taken them all */
_Bool sockets_say(const struct sockets *sockets, int fd, const void *data, size_t len);
