/* accept(), which libpmix calls by its bare name and so finds here, as the program is searched
 * first.
 *
 * libpmix's server listens on the loopback interface, where anybody on the node can connect. With
 * psec native it believes the uid that a client claims, and 4.2 reads a connection's first message
 * before it does anything else, so that one who says nothing would stop it. So a connection that is
 * not of the job's user never gets there. */
#include "common/server/limits.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/owner.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TELL_EVERY_MS = 60000 };

/* What the other side did is no reason to listen no more, as libpmix from 5.0 on takes it: it
 * stops at each error but EAGAIN and EINTR. */
static int not_now(int error)
{
    switch (error) {
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EOPNOTSUPP:
    case ETIMEDOUT:
    case EPERM: /* a firewall's */
        return EAGAIN;
    case ENOBUFS:
    case ENOMEM:
        log_warning("a connection to libpmix's server waits: %s", strerror(error));
        return EAGAIN;
    default:
        return error;
    }
}

/* Anybody on the node can make as many as he likes: they do not push the step's own lines out of
 * the log. */
static void tell_of_stranger(void)
{
    static _Atomic int64_t next;
    static _Atomic unsigned long cut;
    unsigned long n = ++cut;
    int64_t now = now_ms(), due = next;
    if (now >= due && atomic_compare_exchange_strong(&next, &due, now + TELL_EVERY_MS))
        log_error("a connection to libpmix's server that is not of the job's user was cut; %lu so "
                  "far",
                  n);
}

/* @thread any */
int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict len)
{
    struct sockaddr_storage own;
    socklen_t ownlen = sizeof own;
    int fd = accept4(listener, address, len, 0);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            limits_no_descriptors();
        errno = not_now(errno);
        return -1;
    }
    if (getsockname(fd, (struct sockaddr *)&own, &ownlen) == 0 && own.ss_family == AF_UNIX)
        return fd; /* whose owner looks for himself */
    errno = 0;
    enum owner owner = owner_of(fd);
    if (owner == OWNER_US)
        return fd;
    if (errno == EMFILE || errno == ENFILE)
        limits_no_descriptors();
    close(fd);
    if (owner == OWNER_OTHER)
        tell_of_stranger();
    else /* as of a task that was killed while it connected */
        log_info("a connection to libpmix's server was closed before it was accepted");
    errno = EAGAIN;
    return -1;
}
