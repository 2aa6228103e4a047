/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of reading command lines, with processes that are there, are not, and are not ours.
 */
#include "common/util/cmdline.h"

#include "common/util/test_cmocka.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX = 64 };

/* A process that waits for its standard input's end, with arguments of ours. */
struct child {
    pid_t pid;
    int input;
};

/* @param argv of /bin/sh; NULL: it execs nothing @param before called in it first, or NULL */
static struct child start_child(char *const argv[], int (*before)(void))
{
    int input[2], ready[2];
    char byte;
    struct child child;
    assert_int_equal(pipe(input), 0);
    assert_int_equal(pipe(ready), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        dup2(input[0], 0);
        close(input[1]);
        if (before && before() != 0)
            _exit(1);
        dup2(ready[1], 1);
        if (argv)
            execv("/bin/sh", argv);
        if (write(1, "r", 1) != 1 || read(0, &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(input[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    child.input = input[1];
    return child;
}

static void end_child(struct child *child)
{
    int status;
    close(child->input);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

static char *arguments[] = {
    "/bin/sh", "-c", "echo ready; read x; exit 0", "", "two  words", "\xff\xfe", "", NULL};
#define JOINED "/bin/sh -c echo ready; read x; exit 0  two  words \xff\xfe "

static void joins_the_arguments(void **state)
{
    struct child child = start_child(arguments, NULL);
    char *text = cmdline_read(child.pid, MAX);
    (void)state;
    assert_non_null(text);
    assert_string_equal(text, JOINED);
    free(text);
    end_child(&child);
}

static void has_a_bound(void **state)
{
    struct child child = start_child(arguments, NULL);
    char *text = cmdline_read(child.pid, strlen(JOINED));
    (void)state;
    assert_non_null(text);
    assert_string_equal(text, JOINED);
    free(text);
    assert_null(cmdline_read(child.pid, strlen(JOINED) - 1));
    assert_null(cmdline_read(child.pid, 1));
    end_child(&child);
}

static void finds_none_of_a_process_that_ended(void **state)
{
    struct child child = start_child(arguments, NULL);
    siginfo_t info;
    (void)state;
    close(child.input);
    child.input = -1;
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_null(cmdline_read(child.pid, MAX)); /* its end has not been asked for yet */
    end_child(&child);
    assert_null(cmdline_read(child.pid, MAX));
    assert_null(cmdline_read(0, MAX));
    assert_null(cmdline_read(-1, MAX));
}

static int become_nobody(void)
{
    return setuid(65534);
}

static int hide(void)
{
    /* as of a program that its user may not look into; root's is his even so */
    return prctl(PR_SET_DUMPABLE, 0) != 0 || (geteuid() == 0 && setuid(65534) != 0);
}

static void finds_none_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct child child = start_child(arguments, become_nobody);
    assert_null(cmdline_read(child.pid, MAX));
    end_child(&child);
}

static void finds_none_of_one_with_other_rights(void **state)
{
    int status;
    (void)state;
    struct child child = start_child(NULL, hide);
    pid_t reader = fork();
    if (reader == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        _exit(cmdline_read(child.pid, MAX) == NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    end_child(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_the_arguments),
        cmocka_unit_test(has_a_bound),
        cmocka_unit_test(finds_none_of_a_process_that_ended),
        cmocka_unit_test(finds_none_of_another_user),
        cmocka_unit_test(finds_none_of_one_with_other_rights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
