/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the connections that libpmix gets from accept(), which is accept.c's here, too.
 */
#include "common/server/process/accept.h"

#include "common/launch/boot.h"
#include "common/server/process/limits.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void limits_no_descriptors(void)
{
    abort();
}

#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif

enum { LEAST_DELAY_US = 20000 }; /* with 100 ticks a second */

/* A listener like libpmix's, and a client of it. */
struct ends {
    int listener, client, launcher;
};

static int begin(void **state)
{
    static struct ends ends;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, control) != 0)
        return -1;
    ends.launcher = control[0] == BOOT_FD_CONTROL ? dup(control[0]) : control[0];
    if (dup2(control[1], BOOT_FD_CONTROL) < 0)
        return -1;
    ends.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ends.client = socket(AF_INET, SOCK_STREAM, 0);
    *state = &ends;
    return bind(ends.listener, (struct sockaddr *)&at, sizeof at) != 0 ||
           listen(ends.listener, 8) != 0 ||
           getsockname(ends.listener, (struct sockaddr *)&at, &len) != 0 ||
           connect(ends.client, (struct sockaddr *)&at, sizeof at) != 0;
}

static int begin_deferred(void **state)
{
    accept_defer(true);
    int rc = begin(state);
    accept_defer(false);
    return rc;
}

static int end(void **state)
{
    const struct ends *ends = *state;
    close(ends->listener);
    close(ends->client);
    close(ends->launcher);
    return 0;
}

/* The kernel sends what libpmix writes at once, and soon acknowledges what the client has sent, if
 * it can be told to. The launcher learns that PMIx is used. */
static void test_client(void **state)
{
    const struct ends *ends = *state;
    int fd = accept(ends->listener, NULL, NULL), on = 0, us = 0;
    socklen_t len = sizeof on;
    unsigned char said = 0;
    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_true(on);
    if (getsockopt(fd, IPPROTO_TCP, TCP_DELACK_MAX_US, &us, &len) == 0)
        assert_in_range(us, 1, LEAST_DELAY_US);
    assert_int_equal(recv(ends->launcher, &said, 1, MSG_DONTWAIT), 1);
    assert_int_equal(said, BOOT_SAYS_USED);
    assert_int_equal(accept(ends->listener, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    close(fd);
}

/* A client is accepted when it has said something, and not before: its first message is there when
 * libpmix waits for it. */
static void test_silent(void **state)
{
    const struct ends *ends = *state;
    struct pollfd waits = {.fd = ends->listener, .events = POLLIN};
    char said = 0;
    assert_int_equal(poll(&waits, 1, 0), 0);
    assert_int_equal(accept(ends->listener, NULL, NULL), -1);
    assert_int_equal(send(ends->client, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(poll(&waits, 1, 5000), 1);
    int fd = accept(ends->listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, &said, 1, MSG_DONTWAIT), 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_client, begin, end),
        cmocka_unit_test_setup_teardown(test_silent, begin_deferred, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
