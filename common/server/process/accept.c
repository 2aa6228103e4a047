/* SPDX-License-Identifier: BSD-3-Clause */
/* accept() and listen(), which libpmix calls by their bare names and so finds here, as the program
 * is searched first.
 *
 * libpmix's server listens on the loopback interface, where every user of the node can connect.
 * With psec native it believes the uid that a client claims, and 4.2 reads a connection's first
 * message before it does anything else, so that a client which says nothing would stop it. So a
 * connection of another user never gets there. */
#include "common/server/process/accept.h"

#include "common/launch/boot.h"
#include "common/server/process/limits.h"
#include "common/server/process/rounds.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/owner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif

enum { TELL_EVERY_MS = 60000, CUT_AT_ONCE = 64, SILENT_S = 7 };

/* libpmix from 5.0 on stops listening at each error but EAGAIN and EINTR. Nothing that the other
 * side can cause may do that. @return what libpmix is to see */
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
    case ENOBUFS:
    case ENOMEM:
        return EAGAIN;
    default:
        return error;
    }
}

/* Any process on the node can make such connections, as many as it likes. Lines about them are few,
 * so that they do not push the step's own lines out of the log, and none is on the terminal: the
 * step's user can do nothing about them. */
struct seldom {
    _Atomic int64_t next;
    _Atomic unsigned long n;
};

/* @return how many there were so far, or 0: of this one nothing is to be said */
static unsigned long now_and_then(struct seldom *what)
{
    unsigned long n = ++what->n;
    int64_t now = now_ms(), due = what->next;
    return now >= due && atomic_compare_exchange_strong(&what->next, &due, now + TELL_EVERY_MS) ? n
                                                                                                : 0;
}

static void tell_of_cut(enum owner owner)
{
    static struct seldom strangers, gone;
    unsigned long n = now_and_then(owner == OWNER_OTHER ? &strangers : &gone);
    if (n > 0 && owner == OWNER_OTHER)
        log_warning(
            "a connection to libpmix's server that is not of the job's user was cut; %lu so "
            "far",
            n);
    else if (n > 0) /* as of a task that was killed while it connected */
        log_info("a connection to libpmix's server was closed before it was accepted; %lu so far",
                 n);
}

/* @return the next connection that waits, or -1 with an errno that libpmix goes on after */
static int next_connection(int listener, __SOCKADDR_ARG address, socklen_t *restrict len)
{
    static struct seldom waits;
    int fd = accept4(listener, address, len, 0);
    if (fd >= 0)
        return fd;
    if (errno == EMFILE || errno == ENFILE)
        limits_no_descriptors();
    if ((errno == ENOBUFS || errno == ENOMEM) && now_and_then(&waits) > 0)
        log_warning("a connection to libpmix's server waits: %s", strerror(errno));
    errno = not_now(errno);
    return -1;
}

/* Once, before anything is read: without a word the plugin takes the step for one without PMIx, and
 * lets it go on without us. */
static void tell_used(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    static const unsigned char used = BOOT_SAYS_USED;
    if (!atomic_flag_test_and_set(&told) &&
        send(BOOT_FD_CONTROL, &used, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        log_warning(
            "the plugin cannot be told that tasks use PMIx, and counts this server as unused: %s",
            strerror(errno));
}

/* Has messages not wait for each other. The kernel keeps a small message back until the one before
 * it is acknowledged, and a peer that has nothing to send acknowledges after 40 ms: an event right
 * behind an answer was that late. In the other direction it is the client's kernel that keeps
 * messages back. From Linux 6.15 on we can have our kernel acknowledge after two ticks of its
 * clock, which is the least; an answer that is sent sooner carries the acknowledgement, as before.
 */
static void let_pass(int fd)
{
    const int on = 1;
    struct timespec tick = {0};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    const int us = (int)(2 * tick.tv_nsec / 1000);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        log_debug("messages to a client may wait for each other: %s", strerror(errno));
    if (setsockopt(fd, IPPROTO_TCP, TCP_DELACK_MAX_US, &us, sizeof us) != 0)
        log_debug("a client's messages may wait for each other: %s", strerror(errno));
}

static atomic_bool defers;

void accept_defer(bool on)
{
    defers = on;
}

/* Ours is called by all that listens in this process. A client may wait for a processor between
 * connect() and its first message, on a busy machine for longer than libpmix waits. The kernel
 * waits without anybody's thread. @thread any */
int listen(int fd, int backlog)
{
    const int seconds = SILENT_S;
    if (defers && setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) != 0)
        log_debug("libpmix may wait for clients that say nothing: %s", strerror(errno));
    return (int)syscall(SYS_listen, fd, backlog);
}

/* Takes the connections of others out of the queue, some at once, since libpmix comes back for each
 * one only after all else that it has to do. @thread any */
int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict len)
{
    struct sockaddr_storage own;
    socklen_t own_len = sizeof own, cap = len != NULL ? *len : 0;
    if (getsockname(listener, (struct sockaddr *)&own, &own_len) == 0 && own.ss_family == AF_UNIX)
        return next_connection(listener, address, len); /* whose owner looks for himself */
    for (int i = 0; i < CUT_AT_ONCE && !rounds_hold(); i++) {
        if (len != NULL)
            *len = cap;
        int fd = next_connection(listener, address, len);
        if (fd < 0)
            return -1;
        enum owner owner = owner_of(fd);
        if (owner == OWNER_US) {
            tell_used();
            let_pass(fd);
            rounds_accepted(fd);
            return fd;
        }
        if (owner == OWNER_GONE && (errno == EMFILE || errno == ENFILE))
            limits_no_descriptors();
        close(fd);
        tell_of_cut(owner);
    }
    errno = EAGAIN;
    return -1;
}
