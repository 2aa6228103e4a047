/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which user is at the other end of a connection on the loopback interface.
 *
 * The kernel knows: a socket belongs to the uid that made it. It is asked for the one socket with
 * these two addresses and ports (NETLINK_SOCK_DIAG), which takes as long on a node with many
 * connections as on one with few. A kernel without inet_diag has the tables below /proc/net only,
 * which have a line for each connection of the node.
 */
#pragma once

#include <sys/types.h>

enum owner {
    OWNER_GONE,  /**< no user's: it was closed, or its process has ended */
    OWNER_US,    /**< our own uid's, or that which was asked for */
    OWNER_OTHER, /**< another one's, or not on the loopback interface */
};

/** The first call finds out whether the kernel can be asked, and logs a warning where it cannot.
 * @param fd an accepted TCP connection
 * @return whose its other end is. Where neither the kernel nor its tables can be asked, as without
 * a descriptor to be had, OWNER_GONE, and errno says why; else errno is 0 with OWNER_GONE.
 * @thread any */
enum owner owner_of(int fd);

/** The same of another uid than our own: OWNER_US if it is @p uid 's. */
enum owner owner_by(int fd, uid_t uid);
