/* SPDX-License-Identifier: BSD-3-Clause */
/* This node's addresses by getifaddrs(), a listening socket, and the order of others' addresses. */
#include "common/transport/direct/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 256, TEXT = INET6_ADDRSTRLEN, PORT_MAX = 65535 };

/* What the settings say. */
struct place {
    enum { PLACE_ANY, PLACE_INTERFACE, PLACE_NETWORK } kind;
    const char *name;    /* of the interface */
    struct address base; /* of the network, or an address */
    unsigned bits;       /* of it that count */
};

bool address_take(const struct sockaddr *sa, struct address *address)
{
    *address = (struct address){0};
    if (sa->sa_family == AF_INET) {
        address->len = 4;
        memcpy(address->bytes, &((const struct sockaddr_in *)sa)->sin_addr, 4);
        return true;
    }
    if (sa->sa_family != AF_INET6)
        return false;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;
    bool mapped = IN6_IS_ADDR_V4MAPPED(in6);
    address->len = mapped ? 4 : 16;
    memcpy(address->bytes, in6->s6_addr + (mapped ? 12 : 0), address->len);
    return true;
}

socklen_t address_give(const struct address *address, uint16_t port, struct sockaddr_storage *sa)
{
    memset(sa, 0, sizeof *sa);
    if (address->len == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)sa;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, address->bytes, 16);
    return sizeof *in6;
}

void address_show(const struct address *address, char *text, size_t cap)
{
    char room[TEXT] = "?";
    inet_ntop(address->len == 4 ? AF_INET : AF_INET6, address->bytes, room, sizeof room);
    snprintf(text, cap, "%s", room);
}

static bool same_bits(const struct address *a, const struct address *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (a->len != b->len || memcmp(a->bytes, b->bytes, whole) != 0)
        return false;
    return rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest)) == 0;
}

bool addresses_have(const struct addresses *list, const struct address *one)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (same_bits(&list->list[i], one, 8u * one->len))
            return true;
    return false;
}

/* "ADDRESS" or "ADDRESS/BITS" */
static bool read_network(const char *where, struct place *place)
{
    char text[TEXT];
    const char *slash = strchr(where, '/');
    size_t len = slash != NULL ? (size_t)(slash - where) : strlen(where);
    if (len >= sizeof text)
        return false;
    memcpy(text, where, len);
    text[len] = '\0';
    place->kind = PLACE_NETWORK;
    place->base.len = inet_pton(AF_INET, text, place->base.bytes) == 1    ? 4
                      : inet_pton(AF_INET6, text, place->base.bytes) == 1 ? 16
                                                                          : 0;
    place->bits = 8u * place->base.len;
    if (slash != NULL) {
        char *end;
        unsigned long bits = strtoul(slash + 1, &end, 10);
        if (end == slash + 1 || *end != '\0' || bits > place->bits)
            return false;
        place->bits = (unsigned)bits;
    }
    return place->base.len != 0;
}

static bool read_place(const char *where, struct place *place)
{
    *place = (struct place){.kind = PLACE_ANY, .name = where};
    if (where[0] == '\0' || read_network(where, place))
        return true;
    place->kind = PLACE_INTERFACE;
    return strlen(where) < IFNAMSIZ && strpbrk(where, "/: \t") == NULL;
}

static bool is_at(const struct place *place, const struct ifaddrs *at,
                  const struct address *address)
{
    if (place->kind == PLACE_INTERFACE)
        return strcmp(at->ifa_name, place->name) == 0;
    return place->kind == PLACE_ANY || same_bits(&place->base, address, place->bits);
}

static bool is_link_local(const struct address *address)
{
    const unsigned char *b = address->bytes;
    return address->len == 4 ? b[0] == 169 && b[1] == 254 : b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

/* @return whether it is an address that others may know */
static bool is_good(const struct ifaddrs *at, struct address *address)
{
    return at->ifa_addr != NULL && (at->ifa_flags & IFF_UP) &&
           address_take(at->ifa_addr, address) && !is_link_local(address);
}

int addresses_own(const char *where, struct addresses *own, struct err *err)
{
    struct place place;
    struct ifaddrs *all;
    *own = (struct addresses){0};
    if (!read_place(where, &place))
        return err_set(err, "\"%s\" is neither an interface nor an address", where);
    if (getifaddrs(&all) != 0)
        return err_set(err, "the node's addresses are not known: %s", strerror(errno));
    for (int loop = 0; loop < 2 && own->n == 0; loop++) {
        for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
            struct address address;
            bool is_loop = at->ifa_flags & IFF_LOOPBACK;
            if (own->n < ADDRESSES_MAX && is_loop == (loop == 1) && is_good(at, &address) &&
                is_at(&place, at, &address) && !addresses_have(own, &address))
                own->list[own->n++] = address;
        }
    }
    freeifaddrs(all);
    if (own->n == 0 && place.kind == PLACE_INTERFACE)
        return err_set(err, "no interface \"%s\" that is up has an address here", where);
    return own->n > 0 ? 0
                      : err_set(err, "this node has no address%s%s",
                                where[0] != '\0' ? " that fits " : "", where);
}

/* How well an address of another node fits here: 0 best. */
static int rank_of(const struct ifaddrs *all, const struct address *address)
{
    int rank = 1;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        struct address ours, mask;
        unsigned bits = 0;
        if (!is_good(at, &ours) || at->ifa_netmask == NULL || !address_take(at->ifa_netmask, &mask))
            continue;
        if (same_bits(&ours, address, 8u * ours.len))
            return 2;
        while (bits < 8u * mask.len && (mask.bytes[bits / 8] & 0x80 >> bits % 8) != 0)
            bits++;
        if (same_bits(&ours, address, bits))
            rank = 0;
    }
    return rank;
}

void addresses_sort(struct addresses *list)
{
    struct addresses sorted = {0};
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    for (int rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < list->n; i++)
            if (rank_of(all, &list->list[i]) == rank)
                sorted.list[sorted.n++] = list->list[i];
    freeifaddrs(all);
    *list = sorted;
}

static bool has_ipv6(const struct addresses *own)
{
    for (uint32_t i = 0; i < own->n; i++)
        if (own->list[i].len == 16)
            return true;
    return false;
}

/* @param port 0: any @return a descriptor, or -1 with errno */
static int listen_at(const struct addresses *own, uint16_t port)
{
    struct sockaddr_storage sa;
    struct address any = {.len = has_ipv6(own) ? 16 : 4};
    socklen_t len = address_give(own->n == 1 ? &own->list[0] : &any, port, &sa);
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (sa.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&sa, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

int addresses_listen(const struct addresses *own, int first, int n, uint16_t *port, struct err *err)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof sa;
    int fd = first == 0 ? listen_at(own, 0) : -1;
    /* Servers of many steps on a node share the range: each begins at a place of its own. */
    for (int i = 0; first != 0 && fd < 0 && i < n; i++) {
        int at = first + (i + (int)getpid()) % n;
        if (at <= PORT_MAX)
            fd = listen_at(own, (uint16_t)at);
        if (fd < 0 && errno != EADDRINUSE)
            break;
    }
    if (fd < 0 && first != 0)
        return err_set(err, "none of the ports %d to %d can be listened on: %s", first,
                       first + n - 1, strerror(errno));
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        return err_set(err, "no port can be listened on: %s", strerror(errno));
    *port = ntohs(sa.ss_family == AF_INET ? ((struct sockaddr_in *)&sa)->sin_port
                                          : ((struct sockaddr_in6 *)&sa)->sin6_port);
    return fd;
}
