/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which connections wait for those of the round before.
 */
#include "common/server/process/rounds.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The clock's hand is ours. */
static int64_t ms = 1000;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return 0;
}

/* @return a connection of a task that has been accepted */
static int connect_task(uint32_t slot)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_false(rounds_hold());
    rounds_accepted(fd);
    rounds_connected(slot);
    return fd;
}

static int open_two(void **state)
{
    (void)state;
    rounds_open(2);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    rounds_close();
    return 0;
}

/* The quick one waits until the slow one's connection has closed, and then both go on. */
static void test_turn(void **state)
{
    (void)state;
    int quick = connect_task(0), slow = connect_task(1);
    for (int round = 0; round < 3; round++) {
        rounds_finalized(0);
        assert_true(rounds_hold());
        close(quick);
        assert_true(rounds_hold());
        rounds_finalized(1);
        assert_true(rounds_hold());
        close(slow);
        quick = connect_task(0);
        slow = connect_task(1);
    }
    close(quick);
    close(slow);
}

/* A task that connects for the first time is not late for what another one has ended. */
static void test_first(void **state)
{
    (void)state;
    int quick = connect_task(0);
    rounds_finalized(0);
    close(quick);
    int slow = connect_task(1);
    assert_true(rounds_hold());
    close(slow);
    assert_false(rounds_hold());
}

/* One that goes on with its first session is waited for once. */
static void test_stays(void **state)
{
    (void)state;
    int quick = connect_task(0), stays = connect_task(1);
    rounds_finalized(0);
    close(quick);
    assert_true(rounds_hold());
    ms += ROUNDS_HOLD_MS - 1;
    assert_true(rounds_hold());
    ms += 1;
    for (int round = 0; round < 3; round++) {
        quick = connect_task(0);
        rounds_finalized(0);
        close(quick);
    }
    assert_false(rounds_hold());
    close(stays);
}

/* So is a tool, and its number may be another file's when it has closed. */
static void test_tool(void **state)
{
    (void)state;
    int a = connect_task(0), b = connect_task(1), tool = socket(AF_INET, SOCK_STREAM, 0);
    rounds_accepted(tool);
    rounds_finalized(0);
    rounds_finalized(1);
    close(a);
    close(b);
    assert_true(rounds_hold());
    close(tool);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(other, a);
    assert_false(rounds_hold());
    close(other);
}

/* A libpmix that needs no help, and a process that is no task of the node. */
static void test_off(void **state)
{
    (void)state;
    rounds_open(0);
    int a = connect_task(0);
    rounds_finalized(0);
    rounds_finalized(7);
    assert_false(rounds_hold());
    close(a);
}

/* A process that does not read, and then does. */
static void test_congested(void **state)
{
    static char much[65536];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    (void)state;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    int fd = accept(listener, NULL, NULL);
    rounds_accepted(fd);
    assert_false(rounds_congested());
    while (send(fd, much, sizeof much, MSG_DONTWAIT) > 0)
        ;
    assert_true(rounds_congested());
    while (rounds_congested())
        assert_true(recv(client, much, sizeof much, 0) > 0);
    while (send(fd, much, sizeof much, MSG_DONTWAIT) > 0)
        ;
    assert_true(rounds_congested());
    close(fd);
    assert_true(rounds_congested()); /* libpmix may not know yet whose connection it was */
    ms += ROUNDS_SETTLE_MS;
    assert_false(rounds_congested());
    close(client);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turn, open_two, close_all),
        cmocka_unit_test_setup_teardown(test_congested, open_two, close_all),
        cmocka_unit_test_setup_teardown(test_first, open_two, close_all),
        cmocka_unit_test_setup_teardown(test_stays, open_two, close_all),
        cmocka_unit_test_setup_teardown(test_tool, open_two, close_all),
        cmocka_unit_test_teardown(test_off, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
