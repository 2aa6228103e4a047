/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the syslog sink, with a socket of our own for syslog's and a pipe for standard error.
 */
#include "common/util/log_syslog.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[] = "/tmp/muster-syslog-XXXXXX";
static char path[64];
static int saved_err, err_pipe[2];

static int listen_here(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "%s/log", mkdtemp(dir) ? dir : "");
    saved_err = dup(STDERR_FILENO);
    return pipe2(err_pipe, O_NONBLOCK) < 0 || dup2(err_pipe[1], STDERR_FILENO) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_open(NULL, NULL, LOG_LEVEL_INFO, NULL);
    dup2(saved_err, STDERR_FILENO);
    unlink(path);
    return rmdir(dir);
}

/* Asserts that what fd has next is as given; NULL: that it has nothing. A line of syslog has a
 * date and a process in it, which are left out. */
static void assert_next(int fd, const char *expected)
{
    char text[2000] = "", *from, *to;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    if (!expected) {
        assert_int_equal(n, -1);
        return;
    }
    assert_true(n > 0);
    from = strchr(text, '>');
    to = strstr(text, "test[");
    if (from && to && (to = strchr(to, ']')))
        memmove(from + 1, to + 1, strlen(to));
    assert_string_equal(text, expected);
}

static void lines(void **state)
{
    struct log_syslog syslog;
    struct err err = {0};
    int fd = listen_here();
    (void)state;
    assert_int_equal(log_syslog_open(&syslog, path, "test", &err), 0);
    log_open(log_syslog, &syslog, LOG_LEVEL_INFO, "4711.0 c07");
    log_warning("odd\nnews");
    assert_next(fd, "<28>: 4711.0 c07: odd?news"); /* daemon.warning */
    assert_next(err_pipe[0], NULL);
    log_debug("no");
    assert_next(fd, NULL);
    log_error("bad news"); /* for the user, too */
    assert_next(fd, "<27>: 4711.0 c07: bad news");
    assert_next(err_pipe[0], "<3>4711.0 c07: bad news\n");
    log_syslog_close(&syslog);
    close(fd);
    unlink(path);
}

static void syslog_starts_anew(void **state)
{
    struct log_syslog syslog;
    struct err err = {0};
    int fd = listen_here();
    (void)state;
    assert_int_equal(log_syslog_open(&syslog, path, "test", &err), 0);
    log_open(log_syslog, &syslog, LOG_LEVEL_INFO, NULL);
    close(fd);
    unlink(path);
    log_info("nobody listens");
    assert_next(err_pipe[0], "<6>nobody listens\n");
    fd = listen_here();
    log_info("here again");
    assert_next(fd, "<30>: here again");
    assert_next(err_pipe[0], NULL);
    log_syslog_close(&syslog);
    close(fd);
    unlink(path);
}

/* A syslog that does not read does not hold the caller up. */
static void a_full_socket(void **state)
{
    struct log_syslog syslog;
    struct err err = {0};
    int fd = listen_here(), size = 2048, i;
    char text[256];
    (void)state;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    assert_int_equal(log_syslog_open(&syslog, path, "test", &err), 0);
    log_open(log_syslog, &syslog, LOG_LEVEL_INFO, NULL);
    for (i = 0; i < 10000 && read(err_pipe[0], text, sizeof(text)) < 0; i++)
        log_info("more and more");
    assert_true(i > 0 && i < 10000);
    log_syslog_close(&syslog);
    close(fd);
    unlink(path);
}

static void no_syslog(void **state)
{
    struct log_syslog syslog;
    struct err err = {0};
    char expected[128];
    (void)state;
    snprintf(expected, sizeof(expected), "cannot connect to %s: No such file or directory", path);
    assert_int_equal(log_syslog_open(&syslog, path, "test", &err), -1);
    assert_string_equal(err.text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(syslog_starts_anew),
        cmocka_unit_test(a_full_socket),
        cmocka_unit_test(no_syslog),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
