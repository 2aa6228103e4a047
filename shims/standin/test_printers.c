/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of printers.c: a program that comes, reads and goes. */
#include "shims/standin/printers.h"

#include "common/util/test_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/output.0", dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* @param error what errno is, of something before */
static void turn(struct printers *p, int error)
{
    struct pollfd fds[PRINTERS_FDS];
    printers_poll(p, fds);
    assert_int_equal(poll(fds, PRINTERS_FDS, 1000), 1);
    errno = error;
    printers_ready(p, fds);
}

static bool has_one(const struct printers *p)
{
    struct pollfd fds[PRINTERS_FDS];
    printers_poll(p, fds);
    return fds[1].fd >= 0;
}

/* Its end is no error, so errno says nothing of it. */
static void one_that_goes(void **state)
{
    struct standin_step step = {0};
    static struct printers_piece piece;
    (void)state;
    snprintf(step.dir, sizeof step.dir, "/tmp/printersXXXXXX");
    assert_non_null(mkdtemp(step.dir));
    struct printers *p = printers_open(&step);
    assert_non_null(p);
    int fd = connect_to(step.dir);
    turn(p, 0);
    assert_true(has_one(p));
    printers_say(p, 3, 1, "word", 4);
    assert_int_equal(printers_wait(p), 0);
    assert_int_equal(recv(fd, &piece, sizeof piece, 0), offsetof(struct printers_piece, data) + 4);
    assert_int_equal(piece.rank, 3);
    close(fd);
    turn(p, EAGAIN);
    assert_false(has_one(p));
    printers_close(p);
    assert_int_equal(rmdir(step.dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
