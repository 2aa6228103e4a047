/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Calls send() or read() until all bytes have gone their way.
 */
#include "common/util/io_all.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

bool send_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

ssize_t read_all(int fd, void *data, size_t size)
{
    char *p = data;
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, p + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}
