/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the line at the end of a step.
 */
#include "common/server/totals.h"
#include "common/server/user_file.h"
#include "common/util/test_cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *name_of(void *arg, uint32_t node)
{
    static char name[16];
    (void)arg;
    snprintf(name, sizeof name, "c%02u", node);
    return name;
}

static void assert_line(const struct totals *totals, const char *expected)
{
    char line[512];
    totals_line(totals, 600 * UINT64_C(1000000), name_of, NULL, line, sizeof line);
    assert_string_equal(line, expected);
}

static void late_nodes_are_named(void **state)
{
    struct totals totals = {.servers = 4};
    (void)state;
    assert_line(&totals, "no operation of PMIx in 600 s");
    tally_wait(&totals.tally, COLL_CONSTRUCT, NULL, 0, 1000);
    totals.tally.decided[COLL_CONSTRUCT] = 1;
    assert_line(&totals, "1 construct waited 0.25 ms of 600 s");
    for (int i = 0; i < 812; i++) {
        totals.tally.decided[COLL_FENCE]++;
        tally_wait(&totals.tally, COLL_FENCE, NULL, 0, 200000);
        if (i < 633)
            tally_last(&totals.tally, COLL_FENCE, 7, i == 5 ? 210000 : 48000);
        else
            tally_last(&totals.tally, COLL_FENCE, 3, 1000);
    }
    assert_line(&totals, "812 fences waited 41 s of 600 s; last: c07 in 633 (77 %), 48 ms late by "
                         "median, 210 ms at most");
}

static void messages_on_their_way_are_not_late(void **state)
{
    struct totals totals = {.servers = 1};
    (void)state;
    totals.tally.decided[COLL_FENCE] = 2;
    tally_wait(&totals.tally, COLL_FENCE, NULL, 0, 200000);
    tally_last(&totals.tally, COLL_FENCE, 7, 200);
    assert_line(&totals, "2 fences waited 200 ms of 600 s; no node was late by 1 ms as a rule");
}

static int count_files(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Of 7 files one is too old, one is another program's, and one is a directory. */
static void old_counts_go(void **state)
{
    static const char *const names[] = {"muster.1.0.stats.json", "muster.2.0.ab.stats.part",
                                        "muster.3.0.stats.json", "muster.4.0.stats.json",
                                        "muster.5.0.stats.json", "muster.notes"};
    static const long ages[] = {31 * 86400L, 400, 300, 200, 0, 1000 * 86400L};
    char home[] = "/tmp/muster-kept.XXXXXX", path[256], file[512];
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(home));
    int dir = user_dir_make(home, ".local/state/muster/stats", path, sizeof path);
    assert_true(dir >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(mkdirat(dir, "muster.0.0.stats.json", 0700), 0);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        struct timespec times[2] = {{.tv_sec = 1900000000 - ages[i]},
                                    {.tv_sec = 1900000000 - ages[i]}};
        int fd = user_file_make(path, names[i]);
        assert_true(fd >= 0);
        assert_int_equal(futimens(fd, times), 0);
        close(fd);
    }
    user_dir_thin(dir, "muster.*.stats.*", 10, 30);
    assert_int_equal(count_files(path), 6);
    dir = user_dir_make(home, ".local/state/muster/stats", path, sizeof path);
    user_dir_thin(dir, "muster.*.stats.*", 2, 30);
    assert_int_equal(count_files(path), 4);
    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        assert_int_equal(unlink(file) == 0, i >= 3);
    }
    assert_int_equal(user_dir_make("home", "x", path, sizeof path), -1);
    assert_true(geteuid() != 0 || chown(home, 12345, 12345) == 0);
    assert_int_equal(user_dir_make(geteuid() == 0 ? home : "/usr", "x", path, sizeof path), -1);
    assert_int_equal(errno, EPERM);
    snprintf(file, sizeof file, "rm -r %s", home);
    assert_int_equal(system(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_nodes_are_named),
        cmocka_unit_test(messages_on_their_way_are_not_late),
        cmocka_unit_test(old_counts_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
