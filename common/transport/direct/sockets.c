/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's sockets. */
#include "common/transport/direct/sockets.h"

#include <unistd.h>

static int kernel_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    return connect(fd, address, len);
}

static ssize_t kernel_sendmsg(int fd, const struct msghdr *message)
{
    return sendmsg(fd, message, MSG_NOSIGNAL);
}

static int kernel_close(int fd)
{
    return close(fd);
}

const struct sockets sockets_of_kernel = {kernel_connect, kernel_sendmsg, kernel_close};

_Bool sockets_say(const struct sockets *sockets, int fd, const void *data, size_t len)
{
    struct iovec part = {(void *)data, len};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return sockets->sendmsg(fd, &message) == (ssize_t)len;
}
