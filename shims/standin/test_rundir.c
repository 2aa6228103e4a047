/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of rundir.c: whose directories count as runs. */
#include "shims/standin/rundir.h"

#include "common/util/test_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct seen {
    char text[256];
    bool enough;
};

static bool note(const char *path, void *arg)
{
    struct seen *seen = arg;
    strcat(seen->text, strrchr(path, '/') + 1);
    return seen->enough;
}

static int make_tmp(void **state)
{
    char *tmp = strdup("/tmp/rundirXXXXXX");
    if (mkdtemp(tmp) == NULL || chdir(tmp) < 0 || mkdir("musterrun.mine", 0700) < 0)
        return -1;
    *state = tmp;
    return 0;
}

static int remove_tmp(void **state)
{
    static const char *const made[] = {"musterrun.mine", "musterrun.open", "other.mine"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        rmdir(made[i]);
    unlink("musterrun.link");
    unlink("musterrun.file");
    if (chdir("/") < 0)
        return -1;
    rmdir(*state);
    free(*state);
    return 0;
}

static void runs_of_the_user(void **state)
{
    struct seen seen = {0};
    assert_false(rundir_each(*state, geteuid(), note, &seen));
    assert_string_equal(seen.text, "musterrun.mine");
}

static void runs_of_another_user(void **state)
{
    struct seen seen = {0};
    assert_false(rundir_each(*state, geteuid() + 1, note, &seen));
    assert_string_equal(seen.text, "");
}

/* Others may make such names, and links to what is ours. */
static void what_is_no_run(void **state)
{
    struct seen seen = {0};
    assert_int_equal(mkdir("other.mine", 0700), 0);
    assert_int_equal(mkdir("musterrun.open", 0700), 0);
    assert_int_equal(chmod("musterrun.open", 0770), 0);
    assert_int_equal(symlink("musterrun.mine", "musterrun.link"), 0);
    assert_int_equal(close(open("musterrun.file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    assert_false(rundir_each(*state, geteuid(), note, &seen));
    assert_string_equal(seen.text, "musterrun.mine");
}

static void the_search_ends(void **state)
{
    struct seen seen = {.enough = true};
    assert_true(rundir_each(*state, geteuid(), note, &seen));
    assert_false(rundir_each("/nonexistent", geteuid(), note, &seen));
}

/* The reason of the failure is told, not that of the cleaning up after it. */
static void too_few_descriptors(void **state)
{
    struct standin_step step = {0};
    struct rlimit had, none;
    struct err err = {0};
    assert_int_equal(setenv("TMPDIR", *state, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
    none = had;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = rundir_make(&step, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(err.text, strerror(EMFILE)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_of_the_user, make_tmp, remove_tmp),
        cmocka_unit_test_setup_teardown(runs_of_another_user, make_tmp, remove_tmp),
        cmocka_unit_test_setup_teardown(what_is_no_run, make_tmp, remove_tmp),
        cmocka_unit_test_setup_teardown(the_search_ends, make_tmp, remove_tmp),
        cmocka_unit_test_setup_teardown(too_few_descriptors, make_tmp, remove_tmp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
