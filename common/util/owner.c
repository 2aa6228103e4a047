#include "common/util/owner.h"

#include "common/util/log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESS_MAX = 48, PORTS_MAX = 16, LOOKS = 8 };

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

/* Whether a descriptor is a connection that was accepted on the loopback interface: its own port is
 * one that this process listens on. */
static bool is_accepted(int fd, const in_port_t *ports, int nports, struct connection *c)
{
    union address here = {0}, there = {0};
    socklen_t len = sizeof here;
    if (getsockname(fd, &here.any, &len) != 0 || !is_loopback(&here))
        return false;
    len = sizeof there;
    if (getpeername(fd, &there.any, &len) != 0)
        return false; /* a listening one, or gone */
    /* Both families have the port at one place. */
    for (int i = 0; i < nports; i++)
        if (here.v4.sin_port == ports[i]) {
            format(&here, c->here);
            format(&there, c->there);
            c->v6 = here.any.sa_family == AF_INET6;
            return true;
        }
    return false;
}

enum owner { OWNER_UNKNOWN, OWNER_US, OWNER_OTHER };

/* One look at the other end. A socket that nobody has any more is in the table without an inode, or
 * not at all. An IPv4 client of an IPv6 listener is in the other table under its own form: libpmix
 * uses one family at both ends. */
static enum owner look(const struct connection *c)
{
    char line[512], from[ADDRESS_MAX], to[ADDRESS_MAX];
    unsigned owner;
    unsigned long inode;
    enum owner found = OWNER_UNKNOWN;
    FILE *f = fopen(c->v6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
    while (f != NULL && found == OWNER_UNKNOWN && fgets(line, sizeof line, f) != NULL)
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
static bool is_ours(const struct connection *c)
{
    enum owner owner = OWNER_UNKNOWN;
    for (int i = 0; i < LOOKS && owner == OWNER_UNKNOWN; i++)
        owner = look(c);
    return owner == OWNER_US;
}

/* Puts a socket whose other end is closed in the place of @p fd. */
static void cut(int fd)
{
    int pair[2];
    shutdown(fd, SHUT_RDWR);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    dup3(pair[0], fd, O_CLOEXEC);
    close(pair[0]);
    close(pair[1]);
}

/* Marks a descriptor as checked. @return whether it was already */
static bool check_off(struct owner_cache *cache, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
        return true;
    if (fd >= cache->n) {
        int n = fd + 64;
        ino_t *checked = realloc(cache->checked, (size_t)n * sizeof *checked);
        if (checked == NULL)
            return false;
        memset(checked + cache->n, 0, (size_t)(n - cache->n) * sizeof *checked);
        cache->checked = checked;
        cache->n = n;
    }
    if (cache->checked[fd] == st.st_ino)
        return true;
    cache->checked[fd] = st.st_ino;
    return false;
}

/* The ports that this process listens on. */
static int listening(DIR *dir, in_port_t *ports, int max)
{
    struct dirent *entry;
    int n = 0, yes;
    rewinddir(dir);
    while ((entry = readdir(dir)) != NULL && n < max) {
        union address a = {0};
        socklen_t len = sizeof yes;
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) != 0 ||
            !yes)
            continue;
        len = sizeof a;
        if (getsockname(fd, &a.any, &len) == 0 &&
            (a.any.sa_family == AF_INET || a.any.sa_family == AF_INET6))
            ports[n++] = a.v4.sin_port;
    }
    rewinddir(dir);
    return n;
}

int owner_cut_foreign(struct owner_cache *cache)
{
    in_port_t ports[PORTS_MAX];
    struct connection c;
    struct dirent *entry;
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        log_error("/proc/self/fd cannot be read: who owns a connection is not checked");
        return 0;
    }
    int nports = listening(dir, ports, PORTS_MAX);
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd == dirfd(dir) || check_off(cache, fd) ||
            !is_accepted(fd, ports, nports, &c) || is_ours(&c))
            continue;
        log_error("a connection to libpmix's server that is not of the job's user was cut");
        cut(fd);
        count++;
    }
    closedir(dir);
    return count;
}

void owner_cache_free(struct owner_cache *cache)
{
    free(cache->checked);
    *cache = (struct owner_cache){0};
}
