/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the socket that messages from other nodes arrive at, as its server leaves: what has come
 * is read, and what comes later is refused. The test plays slurmd.
 */
#include "plugins/slurm/rm_slurm.h"

#include "common/server/process/limits.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct event_base *base;
static struct inbox *inbox;
static char taken[256]; /* what the server has got, one after another */

void limits_no_descriptors(void)
{
    abort();
}

static void take(void *arg, const void *data, size_t len)
{
    (void)arg;
    strncat(taken, data, len);
}

static const struct rm_host host = {.receive = take};

static int begin(void **state)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)state;
    taken[0] = '\0';
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/muster.test_inbox.%d", (int)getpid());
    base = event_base_new();
    if (fd < 0 || base == NULL || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 16) != 0)
        return -1;
    inbox = inbox_open(fd, base, &host);
    return inbox == NULL;
}

static int end(void **state)
{
    (void)state;
    inbox_close(inbox);
    event_base_free(base);
    unlink(address.sun_path);
    return 0;
}

/* @return the socket, or -1: refused */
static int call(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void say(int fd, const char *text)
{
    uint32_t header[] = {htonl(getuid()), htonl((uint32_t)strlen(text))};
    assert_int_equal(write(fd, header, sizeof header), sizeof header);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void run(void)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static void test_what_has_come_is_read(void **state)
{
    (void)state;
    int late = call(); /* has connected, and says it later */
    say(call(), "one");
    assert_true(inbox_shut(inbox, address.sun_path)); /* it has a name, and takes all as ever */
    say(call(), "two");
    unlink(address.sun_path);
    assert_true(inbox_shut(inbox, address.sun_path));
    run();
    assert_true(inbox_shut(inbox, address.sun_path));
    say(late, "three");
    run();
    assert_false(inbox_shut(inbox, address.sun_path));
    assert_string_equal(taken, "onetwothree");
}

/* The plugin hangs, and the name stays: the inbox refuses callers all the same, and reads what has
 * come before. */
static void test_a_name_that_stays(void **state)
{
    (void)state;
    for (int fd; (fd = call()) >= 0 && inbox_shut(inbox, address.sun_path); run())
        close(fd); /* some thousand, and a login may have but 1024 descriptors */
    assert_int_equal(call(), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_has_come_is_read, begin, end),
        cmocka_unit_test_setup_teardown(test_a_name_that_stays, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
