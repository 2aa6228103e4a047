/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is found among the files that a task has mapped.
 */
#include "common/server/tasks/alone.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAP "7f0000000000-7f0000001000 r-xp 00000000 fe:01 131  "

static void assert_finds(const char *maps, const char *expected)
{
    char path[] = "/tmp/muster-test.XXXXXX", name[64];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, maps, strlen(maps)), strlen(maps));
    close(fd);
    alone_find_mpi(path, name, sizeof name);
    unlink(path);
    assert_string_equal(name, expected);
}

static void what_is_an_mpi(void **state)
{
    (void)state;
    assert_finds("", "");
    assert_finds(MAP "/usr/lib/libc.so.6\n" MAP "[heap]\n" MAP "/home/a/libmpi/solve\n", "");
    assert_finds(MAP "/usr/lib/libmpich.so.12.2.1\n" MAP "/usr/lib/libmpichcxx.so.12\n",
                 "libmpich.so.12.2.1");
    assert_finds(MAP "/opt/my mpi/libmpi.so.12", "libmpi.so.12");
    assert_finds(MAP "/usr/lib/libmpi.so.40\n" MAP "/usr/lib/libopen-pal.so.40\n", "");
}

static void what_is_no_file(void **state)
{
    char name[64] = "x";
    (void)state;
    alone_find_mpi("/nonexistent", name, sizeof name);
    assert_string_equal(name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_an_mpi),
        cmocka_unit_test(what_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
