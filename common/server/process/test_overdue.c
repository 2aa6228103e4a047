/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the process's last seconds: one that hangs ends all the same, and its directory with it.
 */
#include "common/server/process/overdue.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANGS_MS = 20, LONG_MS = 3600 * 1000, STOPPED = 7 };

static char dir[] = "/tmp/test_overdue.XXXXXX";

static bool is_there(void)
{
    struct stat st;
    return stat(dir, &st) == 0;
}

/* As libpmix leaves it. */
static int make_dir(void **state)
{
    char path[sizeof dir + 16];
    (void)state;
    memcpy(strrchr(dir, '.'), ".XXXXXX", 7);
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/below", dir);
    if (mkdir(path, 0700) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

static int remove_dir(void **state)
{
    (void)state;
    overdue_remove(dir);
    return is_there() ? -1 : 0;
}

static int status_of(pid_t pid)
{
    int status = -1;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void one_that_hangs_leaves_nothing(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        overdue_start(dir, HANGS_MS);
        for (;;)
            pause();
    }
    assert_int_equal(status_of(pid), 0);
    assert_false(is_there());
}

static void one_that_does_not_goes_on(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        overdue_start(dir, LONG_MS);
        overdue_stop();
        _exit(STOPPED);
    }
    assert_int_equal(status_of(pid), STOPPED);
    assert_true(is_there());
}

/* The launcher was faster. */
static void what_is_gone_is_fine(void **state)
{
    (void)state;
    overdue_remove(dir);
    assert_false(is_there());
    overdue_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_hangs_leaves_nothing, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(one_that_does_not_goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_is_gone_is_fine, make_dir, remove_dir),
    };
    log_open(NULL, NULL, LOG_LEVEL_ERROR, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
