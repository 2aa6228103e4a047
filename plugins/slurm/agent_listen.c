/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's sockets. */
#include "plugins/slurm/agent_listen.h"

#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64 };

/* Tries the ports of SrunPortRange from a random one on, or lets the kernel choose. IPv6's sockets
 * take IPv4's callers, too. @return 0 or an error number */
static int listen_somewhere(int family, int *listener)
{
    const uint16_t *range = slurm_abi_srun_ports();
    uint32_t first = range != NULL ? range[0] : 0, n = range != NULL ? range[1] - first + 1U : 1;
    uint32_t random = 0;
    int off = 0, error = EADDRINUSE;
    if (getrandom(&random, sizeof random, 0) < 0)
        return errno;
    for (uint32_t i = 0; i < n && error == EADDRINUSE; i++) {
        uint16_t port = htons((uint16_t)(first + (random + i) % n));
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
        const void *address = family == AF_INET6 ? (void *)&six : (void *)&four;
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return errno;
        if (family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, address, family == AF_INET6 ? sizeof six : sizeof four) == 0 &&
            listen(fd, BACKLOG) == 0) {
            *listener = fd;
            return 0;
        }
        error = errno;
        close(fd);
    }
    return error;
}

int agent_listen(int *listener)
{
    int rc = listen_somewhere(AF_INET6, listener);
    return rc != 0 ? listen_somewhere(AF_INET, listener) : 0;
}

/* A node that is lost closes no connection, and the steps that it has started end with that. */
void agent_keep_alive(int fd)
{
    int on = 1, idle = 30, between = 10, tries = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
}

/* The port lies alike in both families. */
int agent_listen_port(int listener, uint16_t *port)
{
    struct sockaddr_in6 address;
    socklen_t len = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &len) < 0)
        return -1;
    *port = ntohs(address.sin6_port);
    return 0;
}

int agent_poll(struct pollfd *fds, struct pollfd *open, unsigned n, int ms)
{
    unsigned nopen = 0;
    for (unsigned i = 0; i < n; i++) {
        fds[i].revents = 0;
        if (fds[i].fd >= 0)
            open[nopen++] = fds[i];
    }
    int rc = poll(open, nopen, ms);
    for (unsigned i = 0, k = 0; rc > 0 && i < n; i++)
        if (fds[i].fd >= 0)
            fds[i].revents = open[k++].revents;
    return rc;
}
