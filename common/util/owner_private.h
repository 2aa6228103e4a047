/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The two ways to look a connection's other end up. Private to owner*.c and their test.
 * @thread any
 */
#pragma once

#include "common/util/owner.h"

#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <sys/types.h>

/** A connection, by its ends: ours and the other one. Addresses are of IPv6; one of IPv4 stands in
 * its mapped form, however its socket was made. Ports are in network order. */
struct ends {
    struct in6_addr here, there;
    in_port_t here_port, there_port;
};

/** Whether this kernel answers questions about TCP sockets: asks for one that is certainly there.
 * @return 0, or the errno that tells why it does not */
int owner_diag_probe(void);

/** Asks the kernel for the socket at the other end. @return as owner_of() */
enum owner owner_diag(const struct ends *ends, uid_t uid);

/** What an answer of the kernel's means. It may be of a socket that only resembles the one asked
 * for: a listening one on that port, one that has taken the port since and is connecting, or what
 * is left of one that was closed. */
enum owner owner_judge(const struct ends *ends, const struct inet_diag_msg *answer, uid_t uid);

/** Looks the other end up in /proc/net/tcp and tcp6. @return as owner_of() */
enum owner owner_table(const struct ends *ends, uid_t uid);
