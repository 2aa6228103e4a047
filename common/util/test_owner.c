/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of whose the other end of a connection is, with connections of our own and of another user.
 */
#include "common/util/owner.h"
#include "common/util/owner_private.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* A kernel without inet_diag, or a process that may not ask: the errno of socket(). */
static int no_netlink;
/* How often the kernel was asked, and how often one of its tables was opened. */
static int questions, tables;

int socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && no_netlink != 0) {
        errno = no_netlink;
        return -1;
    }
    questions += domain == AF_NETLINK;
    return (int)syscall(SYS_socket, domain, type, protocol);
}

FILE *fopen(const char *path, const char *mode)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    tables += strncmp(path, "/proc/net/tcp", 13) == 0;
    return fd < 0 ? NULL : fdopen(fd, mode);
}

/* A connection: what was connected and what was accepted. */
struct pair {
    int client, server;
    struct sockaddr_storage at; /* the listener's address, as the client sees it */
    socklen_t at_len;
};

/* @return a listener on the loopback interface; *pair has its address */
static int listen_here(struct pair *pair, int family, bool any)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&pair->at;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&pair->at;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
    pair->at = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
    pair->at_len = family == AF_INET ? sizeof *v4 : sizeof *v6;
    if (fd < 0)
        return -1;
    if (family == AF_INET)
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (!any)
        v6->sin6_addr = in6addr_loopback;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&pair->at, pair->at_len) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&pair->at, &pair->at_len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(const struct pair *pair)
{
    int fd = socket(pair->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&pair->at, pair->at_len), 0);
    return fd;
}

static void connect_pair(struct pair *pair)
{
    int listener = listen_here(pair, AF_INET, false);
    assert_true(listener >= 0);
    pair->client = connect_to(pair);
    pair->server = accept(listener, NULL, NULL);
    close(listener);
}

static void close_pair(struct pair *pair)
{
    close(pair->client);
    close(pair->server);
}

/* First, as it asks in a child before this process has found out where to look. */
static void test_no_inet_diag(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct pair pair;
        no_netlink = EPROTONOSUPPORT;
        connect_pair(&pair);
        enum owner ours = owner_of(pair.server);
        close(pair.client);
        _exit(ours == OWNER_US && tables > 0 && owner_of(pair.server) == OWNER_GONE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Such want passes, so it does not decide where to look from now on. */
static void test_no_descriptor(void **state)
{
    (void)state;
    struct pair pair;
    connect_pair(&pair);
    no_netlink = EMFILE;
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    assert_int_equal(errno, EMFILE);
    no_netlink = 0;
    tables = 0;
    assert_int_equal(owner_of(pair.server), OWNER_US);
    assert_int_equal(tables, 0);
    no_netlink = EMFILE;
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    assert_int_equal(errno, EMFILE);
    no_netlink = 0;
    close_pair(&pair);
}

/* The kernel is asked once for each connection, and none of its tables is read. */
static void test_ours(void **state)
{
    (void)state;
    struct pair pair;
    connect_pair(&pair);
    tables = questions = 0;
    assert_int_equal(owner_of(pair.server), OWNER_US);
    assert_int_equal(owner_of(pair.client), OWNER_US);
    assert_int_equal(questions, 2);
    assert_int_equal(tables, 0);
    close_pair(&pair);
}

/* Clients of both families at a listener of IPv6, and a client of IPv6 with an address of IPv4. */
static void test_families(void **state)
{
    (void)state;
    struct pair pair;
    int listener = listen_here(&pair, AF_INET6, true);
    if (listener < 0)
        skip();
    struct sockaddr_in6 to = *(struct sockaddr_in6 *)&pair.at;
    to.sin6_addr = in6addr_loopback;
    memcpy(&pair.at, &to, sizeof to);
    pair.client = connect_to(&pair);
    pair.server = accept(listener, NULL, NULL);
    assert_int_equal(owner_of(pair.server), OWNER_US);
    close_pair(&pair);
    to.sin6_addr = (struct in6_addr){.s6_addr = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
    memcpy(&pair.at, &to, sizeof to);
    pair.client = connect_to(&pair);
    pair.server = accept(listener, NULL, NULL);
    assert_int_equal(owner_of(pair.server), OWNER_US);
    assert_int_equal(owner_of(pair.client), OWNER_US);
    close_pair(&pair);
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = to.sin6_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(&pair.at, &v4, sizeof v4);
    pair.at_len = sizeof v4;
    pair.client = connect_to(&pair);
    pair.server = accept(listener, NULL, NULL);
    assert_int_equal(owner_of(pair.server), OWNER_US);
    close_pair(&pair);
    close(listener);
}

/* One end of a connection as owner_of() makes it, of IPv4. */
static struct ends ends_of(int fd)
{
    struct sockaddr_in here, there;
    socklen_t len = sizeof here;
    struct ends ends = {.here.s6_addr = {[10] = 0xff, 0xff}, .there.s6_addr = {[10] = 0xff, 0xff}};
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &len), 0);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&there, &len), 0);
    memcpy(&ends.here.s6_addr[12], &here.sin_addr, 4);
    memcpy(&ends.there.s6_addr[12], &there.sin_addr, 4);
    ends.here_port = here.sin_port;
    ends.there_port = there.sin_port;
    return ends;
}

/* By both ways, whichever this kernel has: a connection is of the uid that made its other end. */
static void test_ways(void **state)
{
    (void)state;
    struct pair pair;
    connect_pair(&pair);
    struct ends ends = ends_of(pair.server);
    assert_int_equal(owner_diag(&ends, geteuid()), OWNER_US);
    assert_int_equal(owner_table(&ends, geteuid()), OWNER_US);
    assert_int_equal(owner_diag(&ends, geteuid() + 1), OWNER_OTHER);
    assert_int_equal(owner_table(&ends, geteuid() + 1), OWNER_OTHER);
    ends.there_port = htons(1);
    assert_int_equal(owner_diag(&ends, geteuid()), OWNER_GONE);
    assert_int_equal(owner_table(&ends, geteuid()), OWNER_GONE);
    close_pair(&pair);
}

/* A closed end, and one that is shut, of which nothing more can come. */
static void test_closed(void **state)
{
    (void)state;
    struct pair pair;
    struct linger reset = {.l_onoff = 1};
    connect_pair(&pair);
    shutdown(pair.client, SHUT_WR);
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    assert_int_equal(errno, 0);
    close(pair.client);
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    close(pair.server);
    connect_pair(&pair);
    setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(pair.client);
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    close(pair.server);
}

/* Ends the client's side without a word to the server's. @return 0, with the address that it had,
 * or -1 where the kernel does not allow that */
static int vanish(struct pair *pair, struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int on = 1;
    connect_pair(pair);
    assert_int_equal(getsockname(pair->client, (struct sockaddr *)at, &len), 0);
    if (setsockopt(pair->client, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) != 0) {
        close_pair(pair);
        return -1;
    }
    close(pair->client);
    return 0;
}

/* The other end vanishes without a word, and a listening socket of ours takes its port: the kernel
 * gives that for an answer. Another process may take the port before us: then the next pair does.
 */
static void test_port_taken(void **state)
{
    (void)state;
    struct pair pair;
    struct sockaddr_in at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), tries = 0;
    if (vanish(&pair, &at) < 0) {
        close(listener);
        skip();
    }
    while (bind(listener, (struct sockaddr *)&at, sizeof at) != 0) {
        assert_int_equal(errno, EADDRINUSE);
        assert_true(tries++ < 20);
        close(pair.server);
        assert_int_equal(vanish(&pair, &at), 0);
    }
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(owner_of(pair.server), OWNER_GONE);
    close(listener);
    close(pair.server);
}

/* What the kernel may say of a socket that is not, or no more, the socket that is asked for. */
static void test_judge(void **state)
{
    (void)state;
    struct pair pair;
    connect_pair(&pair);
    struct ends ends = ends_of(pair.server);
    struct inet_diag_msg good = {.idiag_family = AF_INET,
                                 .idiag_state = TCP_ESTABLISHED,
                                 .idiag_inode = 7,
                                 .idiag_uid = 1000,
                                 .id = {.idiag_sport = ends.there_port,
                                        .idiag_dport = ends.here_port,
                                        .idiag_src = {htonl(INADDR_LOOPBACK)},
                                        .idiag_dst = {htonl(INADDR_LOOPBACK)}}};
    close_pair(&pair);
    assert_int_equal(owner_judge(&ends, &good, 1000), OWNER_US);
    assert_int_equal(owner_judge(&ends, &good, 1001), OWNER_OTHER);
    static const uint8_t others[] = {TCP_SYN_SENT,
                                     TCP_SYN_RECV,
                                     TCP_FIN_WAIT1,
                                     TCP_FIN_WAIT2,
                                     TCP_TIME_WAIT,
                                     TCP_CLOSE,
                                     TCP_LISTEN,
                                     TCP_CLOSE_WAIT,
                                     TCP_LAST_ACK,
                                     TCP_CLOSING,
                                     12 /* TCP_NEW_SYN_RECV */};
    for (size_t i = 0; i < sizeof others; i++) {
        struct inet_diag_msg m = good;
        m.idiag_state = others[i];
        assert_int_equal(owner_judge(&ends, &m, 1000), OWNER_GONE);
    }
    struct inet_diag_msg wrong[6] = {good, good, good, good, good, good};
    wrong[0].idiag_inode = 0;
    wrong[1].id.idiag_dport = 0;
    wrong[2].id.idiag_sport++;
    wrong[3].id.idiag_src[0] = 0;
    wrong[4].id.idiag_dst[0] = htonl(INADDR_LOOPBACK + 1);
    wrong[5].idiag_family = AF_INET6;
    for (int i = 0; i < 6; i++)
        assert_int_equal(owner_judge(&ends, &wrong[i], 1000), OWNER_GONE);
}

/* A connection of another user, and one that does not come over the loopback interface. */
static void test_other(void **state)
{
    (void)state;
    struct pair pair;
    int go[2];
    char byte;
    if (geteuid() != 0)
        skip();
    int listener = listen_here(&pair, AF_INET, false);
    assert_int_equal(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        _exit(setresuid(NOBODY, NOBODY, NOBODY) == 0 && connect_to(&pair) >= 0 &&
                      read(go[0], &byte, 1) == 0
                  ? 0
                  : 1);
    }
    close(go[0]);
    pair.server = accept(listener, NULL, NULL);
    assert_int_equal(owner_of(pair.server), OWNER_OTHER);
    close(go[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(pair.server);
    close(listener);
    int local[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, local), 0);
    assert_int_equal(owner_of(local[0]), OWNER_OTHER);
    close(local[0]);
    close(local[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_inet_diag), cmocka_unit_test(test_no_descriptor),
        cmocka_unit_test(test_ours),         cmocka_unit_test(test_families),
        cmocka_unit_test(test_ways),         cmocka_unit_test(test_closed),
        cmocka_unit_test(test_port_taken),   cmocka_unit_test(test_judge),
        cmocka_unit_test(test_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
