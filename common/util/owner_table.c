/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's other end in /proc/net/tcp and tcp6, for kernels without inet_diag. The tables
 * have a line for each connection of the node, and are read anew for each question. */
#include "common/util/owner_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ADDRESS_MAX = 48, LOOKS = 8 };

/* As the tables write it: the address in words of memory order, the port. */
static void format_v4(const struct in6_addr *address, in_port_t port, char *text)
{
    uint32_t word;
    memcpy(&word, &address->s6_addr[12], sizeof word);
    snprintf(text, ADDRESS_MAX, "%08X:%04X", word, ntohs(port));
}

static void format_v6(const struct in6_addr *address, in_port_t port, char *text)
{
    uint32_t words[4];
    memcpy(words, address, sizeof words);
    snprintf(text, ADDRESS_MAX, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
             ntohs(port));
}

/* One look into one table. A socket that no process has any more is there without an inode, or not
 * at all. */
static enum owner look(const char *path, const char *here, const char *there, uid_t uid)
{
    char line[512], from[ADDRESS_MAX], to[ADDRESS_MAX];
    unsigned owner, state;
    unsigned long inode;
    enum owner found = OWNER_GONE;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return OWNER_GONE;
    while (found == OWNER_GONE && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*s %47s %47s %x %*s %*s %*s %u %*s %lu", from, to, &state, &owner,
                   &inode) == 5 &&
            strcmp(from, there) == 0 && strcmp(to, here) == 0 && state == TCP_ESTABLISHED &&
            inode != 0)
            found = owner == uid ? OWNER_US : OWNER_OTHER;
    fclose(f);
    errno = 0;
    return found;
}

/* A table is read in pieces and may skip an entry while others come and go: so what is not there is
 * looked for again. */
enum owner owner_table(const struct ends *ends, uid_t uid)
{
    char here[2][ADDRESS_MAX], there[2][ADDRESS_MAX];
    enum owner owner = OWNER_GONE;
    bool v4 = IN6_IS_ADDR_V4MAPPED(&ends->there);
    format_v4(&ends->here, ends->here_port, here[0]);
    format_v4(&ends->there, ends->there_port, there[0]);
    format_v6(&ends->here, ends->here_port, here[1]);
    format_v6(&ends->there, ends->there_port, there[1]);
    errno = 0;
    for (int i = 0; i < LOOKS && owner == OWNER_GONE && errno == 0; i++) {
        if (v4)
            owner = look("/proc/net/tcp", here[0], there[0], uid);
        if (owner == OWNER_GONE && errno == 0) /* also of IPv4, by a socket of IPv6 */
            owner = look("/proc/net/tcp6", here[1], there[1], uid);
        if (v4 && errno == ENOENT)
            errno = 0; /* a kernel without IPv6 */
    }
    return owner;
}
