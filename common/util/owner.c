/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Asks the kernel by netlink for the uid of a connection's other end, and reads the tables below
 * /proc/net where the kernel has no such netlink.
 */
#include "common/util/owner.h"

#include "common/util/log.h"
#include "common/util/owner_private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* @return whether it is an address of IPv4 or IPv6; then that and the port */
static bool take(const union address *a, struct in6_addr *address, in_port_t *port)
{
    switch (a->any.sa_family) {
    case AF_INET:
        *address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(&address->s6_addr[12], &a->v4.sin_addr, 4);
        *port = a->v4.sin_port;
        return true;
    case AF_INET6:
        *address = a->v6.sin6_addr;
        *port = a->v6.sin6_port;
        return true;
    default:
        return false;
    }
}

static bool is_loopback(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* Where to look, found out once. What fails for want of descriptors or memory decides nothing. */
static enum source { UNKNOWN, KERNEL, TABLES } source(void)
{
    static _Atomic int known = UNKNOWN;
    if (known == UNKNOWN) {
        int error = owner_diag_probe();
        if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS)
            errno = error;
        else if (error == 0)
            known = KERNEL;
        else if (atomic_exchange(&known, TABLES) != TABLES)
            log_warning("this kernel does not tell whose a connection is (inet_diag: %s); each is "
                        "looked up in /proc/net/tcp, which takes longer the more connections the "
                        "node has",
                        strerror(error));
    }
    return (enum source)known;
}

enum owner owner_of(int fd)
{
    return owner_by(fd, geteuid());
}

enum owner owner_by(int fd, uid_t uid)
{
    union address here = {0}, there = {0};
    socklen_t here_len = sizeof here, there_len = sizeof there;
    struct ends ends;
    if (getpeername(fd, &there.any, &there_len) != 0) {
        errno = 0; /* it was reset */
        return OWNER_GONE;
    }
    if (getsockname(fd, &here.any, &here_len) != 0 || !take(&here, &ends.here, &ends.here_port) ||
        !take(&there, &ends.there, &ends.there_port) || !is_loopback(&ends.here))
        return OWNER_OTHER;
    switch (source()) {
    case KERNEL:
        return owner_diag(&ends, uid);
    case TABLES:
        return owner_table(&ends, uid);
    case UNKNOWN:
        break;
    }
    return OWNER_GONE;
}
