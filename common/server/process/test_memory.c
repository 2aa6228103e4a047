/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what a server says whose memory is used up: a child has a bound, and asks for too much.
 */
#include "common/server/process/limits.h"

#include "common/util/test_cmocka.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOUND_MIB = 32, MIB = 1 << 20, BLOCK = 1 << 18, WELL = 7 };

static void *volatile kept; /* or the compiler would leave malloc() out */

static void *nothing(void *arg)
{
    return arg;
}

/* All the memory that there is. */
static void ask_for_blocks(void)
{
    for (int i = 0; i < 2 * BOUND_MIB * MIB / BLOCK; i++)
        kept = malloc(BLOCK);
}

/* So much that no stack fits into the rest, and a thread. */
static void ask_for_a_thread(void)
{
    pthread_t thread;
    for (int i = 0; i < (BOUND_MIB - 4) * MIB / BLOCK; i++)
        kept = malloc(BLOCK);
    pthread_create(&thread, NULL, nothing, NULL);
}

/* There is room for it. */
static void ask_for_little(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0)
        _exit(WELL);
}

/* What a child that asks says as it ends. @return its exit status */
static int said_by(void (*ask)(void), char *text, size_t size)
{
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err err;
        dup2(fds[1], STDERR_FILENO);
        if (limits_memory(BOUND_MIB, 0, "4711.0 c08", &err) == 0)
            ask();
        _exit(99);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void memory_is_used_up(void **state)
{
    char text[512];
    (void)state;
#ifdef MUSTER_SANITIZED
    skip();
#endif
    assert_int_equal(said_by(ask_for_blocks, text, sizeof text), 1);
    assert_non_null(strstr(text, "4711.0 c08: memory is used up: "));
    assert_int_equal(said_by(ask_for_a_thread, text, sizeof text), 1);
    assert_non_null(strstr(text, "4711.0 c08: memory is used up: "));
    assert_non_null(strstr(text, "32 MiB of a server (memory_max in muster.json)"));
    assert_int_equal(said_by(ask_for_little, text, sizeof text), WELL);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_used_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
