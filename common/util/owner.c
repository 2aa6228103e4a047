#include "common/util/owner.h"

#include "common/util/log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESS_MAX = 48 };

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

/* The owner of the socket at @p local that is connected to @p remote. @return whether it is known
 */
static bool owner_of(const char *table, const char *local, const char *remote, uid_t *uid)
{
    char line[512], from[ADDRESS_MAX], to[ADDRESS_MAX];
    unsigned owner;
    bool found = false;
    FILE *f = fopen(table, "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = sscanf(line, "%*s %47s %47s %*s %*s %*s %*s %u", from, to, &owner) == 3 &&
                strcmp(from, local) == 0 && strcmp(to, remote) == 0;
    if (f != NULL)
        fclose(f);
    if (found)
        *uid = owner;
    return found;
}

/* Whether a descriptor is a loopback connection with somebody else. */
static bool is_foreign(int fd, uid_t *uid)
{
    union address here = {0}, there = {0};
    socklen_t len = sizeof here;
    char local[ADDRESS_MAX], remote[ADDRESS_MAX];
    if (getsockname(fd, &here.any, &len) != 0 || !is_loopback(&here))
        return false;
    len = sizeof there;
    if (getpeername(fd, &there.any, &len) != 0)
        return false; /* a listening one */
    format(&there, local);
    format(&here, remote);
    /* An IPv4 client of an IPv6 listener is in the other table under its own form; muster's tests
     * and libpmix use one family at both ends. */
    const char *table = here.any.sa_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6";
    return owner_of(table, local, remote, uid) && *uid != geteuid() && *uid != 0;
}

int owner_shut_foreign(void)
{
    int shut = 0;
    uid_t uid;
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        log_warning("/proc/self/fd cannot be read: the owners of connections are not checked");
        return 0;
    }
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd == dirfd(dir) || !is_foreign(fd, &uid))
            continue;
        log_error("a connection of uid %u to libpmix's server was closed: it is not the job's user",
                  (unsigned)uid);
        shutdown(fd, SHUT_RDWR);
        shut++;
    }
    closedir(dir);
    return shut;
}
