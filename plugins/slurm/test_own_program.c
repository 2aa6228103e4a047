/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which program a process runs. Copies of this program are started, which remove or
 * replace their own file, and say by their exit status what they have found.
 */
#include "plugins/slurm/own_program.h"

#include "common/util/test_cmocka.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test_own_program.XXXXXX", copy[64];

static void copy_self(const char *to)
{
    static char bytes[1 << 16];
    FILE *in = fopen("/proc/self/exe", "r"), *out = fopen(to, "w");
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        fwrite(bytes, 1, n, out);
    fclose(in);
    fclose(out);
    chmod(to, 0755);
}

/* The copy. @return 0: it has found @p expected */
static int be(const char *how, const char *self, const char *expected)
{
    char path[PATH_MAX], next[PATH_MAX];
    if (strcmp(how, "replaced") == 0) { /* as a package does it */
        snprintf(next, sizeof next, "%s.new", self);
        copy_self(next);
        rename(next, self);
    } else if (strcmp(how, "removed") == 0) {
        unlink(self);
    } else if (strcmp(how, "foreign") == 0) {
        copy_self("foreign");
        if (chown("foreign", 65534, 65534) != 0)
            return unlink("foreign") == 0 ? 77 : 98;
        rename("foreign", self);
    }
    return own_program(path, sizeof path) != 0 || strcmp(path, expected) != 0;
}

static int run(const char *how, const char *expected)
{
    int status = -1;
    copy_self(copy);
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(dir) == 0)
            execl(copy, copy, how, copy, expected, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_it_is_there(void **state)
{
    (void)state;
    assert_int_equal(run("there", copy), 0);
}

static void test_an_upgrade_has_replaced_it(void **state)
{
    (void)state;
    assert_int_equal(run("replaced", copy), 0);
}

/* The caller that starts it reads that name in the reason. */
static void test_it_was_removed(void **state)
{
    char gone[96];
    (void)state;
    snprintf(gone, sizeof gone, "%s (deleted)", copy);
    assert_int_equal(run("removed", gone), 0);
}

static void test_another_owner_s_is_not_taken(void **state)
{
    char gone[96];
    (void)state;
    snprintf(gone, sizeof gone, "%s (deleted)", copy);
    int rc = run("foreign", gone);
    if (rc == 77)
        skip(); /* only root can make one */
    assert_int_equal(rc, 0);
}

static int teardown(void **state)
{
    (void)state;
    unlink(copy);
    return rmdir(dir);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return be(argv[1], argv[2], argv[3]);
    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(copy, sizeof copy, "%s/srun", dir);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_there),
        cmocka_unit_test(test_an_upgrade_has_replaced_it),
        cmocka_unit_test(test_it_was_removed),
        cmocka_unit_test(test_another_owner_s_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
