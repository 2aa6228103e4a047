/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Addresses of this node at which other servers can reach it, the socket that listens there, and in
 * which order another server's addresses are worth a try. No name service is asked: it may hang.
 * @thread the loop's
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 8 };

/** An IP address. */
struct address {
    uint8_t len; /**< 4 or 16 bytes */
    unsigned char bytes[16];
};

struct addresses {
    uint32_t n;
    struct address list[ADDRESSES_MAX];
};

/**
 * Finds addresses of this node. Those of the loopback interface count only where there are no
 * others, and link-local ones never do.
 * @param where an interface ("ib0"), an address, a network ("10.1.0.0/16"), or "": any
 * @return 0, or -1 with the reason in @p err
 */
int addresses_own(const char *where, struct addresses *own, struct err *err);

/**
 * Listens on TCP, IPv6 and IPv4 where the node has them.
 * @param own  what is announced; where it is one address, this is the only one listened on
 * @param first,n ports that may be used; 0: any
 * @param port set to the port in use
 * @return a descriptor that does not block, or -1 with the reason in @p err
 */
int addresses_listen(const struct addresses *own, int first, int n, uint16_t *port,
                     struct err *err);

/** @return whether @p one is in the list */
bool addresses_have(const struct addresses *list, const struct address *one);

/** Puts first the addresses in a network of ours, and last the addresses that this node has, too:
 * another node has those for something else, as a bridge of containers. */
void addresses_sort(struct addresses *list);

/** From and to the kernel's form. @return false: of another family */
bool address_take(const struct sockaddr *sa, struct address *address);
socklen_t address_give(const struct address *address, uint16_t port, struct sockaddr_storage *sa);

/** Writes it as people do: "10.1.0.7", "fd00::7". */
void address_show(const struct address *address, char *text, size_t cap);
