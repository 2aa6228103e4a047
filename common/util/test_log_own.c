/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the log that is a user's own: which lines go where, and which files it does not write.
 */
#include "common/util/log_own.h"

#include "common/util/test_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/muster-own-XXXXXX";
static unsigned seen[LOG_LEVEL_DEBUG + 1]; /* lines that the admin's log has */

static void admins(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)text;
    seen[level]++;
}

static const char *in_dir(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"muster.c07.log", "link", "pipe", "other"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_dir(names[i]));
    return rmdir(dir);
}

/* All lines are in the file; the other log has those of its level alone. */
static void the_file_has_more(void **state)
{
    struct log_own own = {
        .fd = -1, .level = LOG_LEVEL_DEBUG, .next_level = LOG_LEVEL_WARNING, .next = admins};
    char text[1024] = "";
    struct stat st;
    struct err err;
    (void)state;
    assert_int_equal(log_own_open(&own, in_dir("muster.%n.log"), "c07", &err), 0);
    assert_int_equal(log_own_level(&own), LOG_LEVEL_DEBUG);
    log_open(log_own, &own, log_own_level(&own), "4711.0 c07");
    log_error("one");
    log_debug("two\033[2J");
    log_own_close(&own);
    assert_int_equal(log_own_level(&own), LOG_LEVEL_WARNING);
    log_warning("three"); /* without the file */
    assert_int_equal(stat(in_dir("muster.c07.log"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    FILE *file = fopen(in_dir("muster.c07.log"), "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, " error: 4711.0 c07: one\n"));
    assert_non_null(strstr(text, " debug: 4711.0 c07: two?[2J\n"));
    assert_null(strstr(text, "three"));
    assert_int_equal(seen[LOG_LEVEL_ERROR], 1);
    assert_int_equal(seen[LOG_LEVEL_WARNING], 1);
    assert_int_equal(seen[LOG_LEVEL_DEBUG], 0);
}

static void refuse(const char *path, const char *why)
{
    struct log_own own;
    struct err err = {0};
    assert_int_equal(log_own_open(&own, path, "c07", &err), -1);
    assert_int_equal(own.fd, -1);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void what_is_no_file_of_the_users(void **state)
{
    char longer[LOG_OWN_PATH_SIZE + 2];
    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(symlink("other", in_dir("link")), 0);
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    refuse("muster.log", "absolute path");
    refuse(longer, "less than");
    refuse(in_dir("link"), "symbolic link");
    refuse(in_dir("pipe"), ""); /* without waiting for a reader */
    refuse(dir, "directory");
    refuse(in_dir("no/file"), "No such file");
    refuse("/dev/null", "neither a file nor a terminal");
    assert_int_equal(access(in_dir("other"), F_OK), -1);
    if (geteuid() != 0)
        return;
    int fd = open(in_dir("other"), O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, 12345, 12345), 0);
    close(fd);
    refuse(in_dir("other"), "another user's");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_has_more),
        cmocka_unit_test(what_is_no_file_of_the_users),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
