#include "common/util/owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESS_MAX = 48, LOOKS = 8 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return a->any.sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
            (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) && a->v6.sin6_addr.s6_addr[12] == 127));
}

/* As /proc/net/tcp and tcp6 write it: the address in words of memory order, the port. */
static void format(const union address *a, char *text)
{
    uint32_t words[4];
    if (a->any.sa_family == AF_INET) {
        snprintf(text, ADDRESS_MAX, "%08X:%04X", a->v4.sin_addr.s_addr, ntohs(a->v4.sin_port));
        return;
    }
    memcpy(words, &a->v6.sin6_addr, sizeof words);
    snprintf(text, ADDRESS_MAX, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
             ntohs(a->v6.sin6_port));
}

/* One end's address and the other's, as a table writes them. */
struct connection {
    char here[ADDRESS_MAX], there[ADDRESS_MAX];
    bool v6;
};

/* One look at the other end. A socket that nobody has any more is in the table without an inode, or
 * not at all. An IPv4 client of an IPv6 listener is in the other table under its own form: libpmix
 * uses one family at both ends. */
static enum owner look(const struct connection *c)
{
    char line[512], from[ADDRESS_MAX], to[ADDRESS_MAX];
    unsigned owner;
    unsigned long inode;
    enum owner found = OWNER_GONE;
    FILE *f = fopen(c->v6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
    while (f != NULL && found == OWNER_GONE && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*s %47s %47s %*s %*s %*s %*s %u %*s %lu", from, to, &owner, &inode) ==
                4 &&
            strcmp(from, c->there) == 0 && strcmp(to, c->here) == 0 && inode != 0)
            found = owner == geteuid() ? OWNER_US : OWNER_OTHER;
    if (f != NULL)
        fclose(f);
    return found;
}

/* The table is read in pieces and may skip an entry while others come and go: so what is not there
 * is looked for again. Nobody is not us. */
enum owner owner_of(int fd)
{
    union address here = {0}, there = {0};
    socklen_t here_len = sizeof here, there_len = sizeof there;
    struct connection c;
    enum owner owner = OWNER_GONE;
    if (getsockname(fd, &here.any, &here_len) != 0 || !is_loopback(&here) ||
        getpeername(fd, &there.any, &there_len) != 0)
        return OWNER_OTHER;
    format(&here, c.here);
    format(&there, c.there);
    c.v6 = here.any.sa_family == AF_INET6;
    for (int i = 0; i < LOOKS && owner == OWNER_GONE; i++)
        owner = look(&c);
    return owner;
}
