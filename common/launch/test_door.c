/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the door: who knocks, what a task is told, and a server's port that is taken over.
 */
#include "common/launch/door.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOON_MS = 5000 };

static int knock(const struct door *door)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(door->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct pollfd waits = {door->fd, POLLIN, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    if (door->guest < 0)
        assert_int_equal(poll(&waits, 1, SOON_MS), 1);
    return fd;
}

/* Whether the other side has closed the connection. */
static bool is_cut(int fd, int ms)
{
    struct pollfd end = {fd, POLLIN, 0};
    return poll(&end, 1, ms) == 1;
}

static struct door open_door(void)
{
    struct door door;
    struct err err = {0};
    assert_int_equal(door_open(&door, 0, &err), 0);
    return door;
}

static void user_is_kept_waiting(void **state)
{
    struct door door = open_door();
    int first, second;
    (void)state;
    assert_false(door_knocked(&door, geteuid()));
    first = knock(&door);
    assert_true(door_knocked(&door, geteuid()));
    second = knock(&door);
    assert_true(door_knocked(&door, geteuid()));
    assert_false(is_cut(first, 0));
    assert_false(is_cut(second, 0));
    close(first);
    close(second);
    door_close(&door);
    assert_int_equal(door.fd, -1);
}

static void others_are_cut(void **state)
{
    struct door door = open_door();
    int fd = knock(&door);
    (void)state;
    assert_false(door_knocked(&door, geteuid() + 1));
    assert_true(is_cut(fd, SOON_MS));
    close(fd);
    door_close(&door);
}

struct told {
    char uri[128], nspace[64], rank[16];
    int n;
};

static void set(void *arg, const char *key, const char *value)
{
    struct told *told = arg;
    told->n++;
    if (strcmp(key, "PMIX_SERVER_URI41") == 0)
        snprintf(told->uri, sizeof(told->uri), "%s=%s", key, value);
    else if (strcmp(key, "PMIX_NAMESPACE") == 0)
        snprintf(told->nspace, sizeof(told->nspace), "%s", value);
    else if (strcmp(key, "PMIX_RANK") == 0)
        snprintf(told->rank, sizeof(told->rank), "%s", value);
}

static void tasks_are_told_of_it(void **state)
{
    struct door door = open_door();
    struct told told = {0};
    char *env[] = {told.uri, NULL};
    (void)state;
    door_tell(&door, "slurm.1.0", 7, set, &told);
    assert_string_equal(told.nspace, "slurm.1.0");
    assert_string_equal(told.rank, "7");
    assert_int_equal(door_port_of(env), door.port);
    door_close(&door);
}

static void takes_the_place_of_a_server(void **state)
{
    struct door server = open_door(), door;
    struct err err = {0};
    uint16_t port = server.port;
    int client = knock(&server);
    (void)state;
    assert_int_equal(door_open(&door, port, &err), -1);
    assert_true(door_knocked(&server, geteuid()));
    door_close(&server);
    assert_int_equal(door_open(&door, port, &err), 0);
    assert_int_equal(door.port, port);
    close(client);
    client = knock(&door);
    assert_true(door_knocked(&door, geteuid()));
    close(client);
    door_close(&door);
}

/* The server runs as the user, who may have it say anything. */
static void only_ports_of_users(void **state)
{
    static const struct {
        const char *uri;
        uint16_t port;
    } cases[] = {
        {"PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:5000", 5000},
        {"PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:65535", 65535},
        {"PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:1023", 0},
        {"PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:65536", 0},
        {"PMIX_SERVER_URI4=a.0;tcp4://127.0.0.1:-1", 0},
        {"PMIX_SERVER_URI4=a.0;tcp4://10.0.0.1:5000", 0},
        {"PMIX_SERVER_URI4=", 0},
        {"PMIX_RANK=;tcp4://127.0.0.1:5000", 0},
    };

    (void)state;
    assert_int_equal(door_port_of(NULL), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64], *env[] = {text, NULL};
        snprintf(text, sizeof(text), "%s", cases[i].uri);
        assert_int_equal(door_port_of(env), cases[i].port);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_is_kept_waiting),        cmocka_unit_test(others_are_cut),
        cmocka_unit_test(tasks_are_told_of_it),        cmocka_unit_test(only_ports_of_users),
        cmocka_unit_test(takes_the_place_of_a_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
