/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Calls send() until all bytes are with the kernel. A peer that has gone gives an error, not a
 * signal.
 */
#include "common/util/send_all.h"

#include <errno.h>
#include <sys/socket.h>

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
