/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of muster-attach: ranks, what stands for what, and commands that run, end and are ended.
 */
#include "common/status/attach.h"
#include "common/status/commands.h"
#include "common/util/test_cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ranks(void **state)
{
    static const char *const wrong[] = {"", ",", "1,", ",1", "-1", "1-", "2-1", "a", "1 2", "1,,2"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(attach_is_ranks(wrong[i]));
    assert_true(attach_is_ranks("0"));
    assert_true(attach_is_ranks("0-3,5,7-7"));
}

static void expect(const char *word, const char *text)
{
    const struct attach_place place = {.node = "c07", .rank = 12, .pid = 4711};
    char *got = attach_expand(word, &place);
    assert_string_equal(got, text);
    free(got);
}

static void words(void **state)
{
    char *each[] = {(char *)"gdb", (char *)"-p", (char *)"%p", NULL},
         *once[] = {(char *)"date", (char *)"+%%p %n %s %", NULL};
    (void)state;
    assert_true(attach_is_for_ranks(each));
    assert_false(attach_is_for_ranks(once));
    expect("core.%n.%r.%p", "core.c07.12.4711");
    expect("100%% %%p %s %", "100% %p %s %");
    expect("", "");
}

/* What one command writes to both outputs, which are files. @return its status */
static int run(const char *script, const char *tag, char *said, size_t cap)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    const struct command_plan plan = {.argv = argv, .tag = tag, .death = SIGKILL};
    FILE *file = tmpfile();
    int out = dup(STDOUT_FILENO);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    struct commands *commands = commands_new(1);
    assert_int_equal(commands_start(commands, &plan), 0);
    int status = commands_run(commands);
    commands_free(commands);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    rewind(file);
    size_t n = fread(said, 1, cap - 1, file);
    said[n] = '\0';
    fclose(file);
    return status;
}

static void tags(void **state)
{
    char said[512];
    (void)state;
    assert_int_equal(run("echo one; echo; printf two; exit 7", "3", said, sizeof said), 7);
    assert_string_equal(said, "[3] one\n[3] \n[3] two\n");
    assert_int_equal(run("echo plain", NULL, said, sizeof said), 0);
    assert_string_equal(said, "plain\n");
    assert_int_equal(run("kill -9 $$", NULL, said, sizeof said), 128 + 9);
}

/* Whether it is there, and has not ended: not every first process reaps what is left to it. */
static bool runs(pid_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return false;
    bool read = fscanf(in, "%*d (%*[^)]) %c", &state) == 1;
    fclose(in);
    return read && state != 'Z';
}

/* What a command has left behind ends with it, though it holds the pipe. */
static void left_behind(void **state)
{
    char said[64];
    (void)state;
    assert_int_equal(run("sleep 600 & echo $!", NULL, said, sizeof said), 0);
    pid_t pid = (pid_t)atoi(said);
    assert_true(pid > 0);
    for (int i = 0; i < 1000 && runs(pid); i++)
        usleep(10000);
    assert_false(runs(pid));
}

/* The user wants the tool to end. */
static void ended(void **state)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"kill -TERM $PPID; sleep 600", NULL};
    const struct command_plan plan = {.argv = argv, .death = SIGKILL};
    struct commands *commands = commands_new(1);
    (void)state;
    assert_int_equal(commands_start(commands, &plan), 0);
    assert_int_equal(commands_run(commands), 128 + SIGTERM);
    assert_false(commands_were_well(commands));
    commands_free(commands);
}

/* A tool that runs a script with the name of a file as $0 is killed, once the script has written a
 * number there: that process ends, too. @param said what the script has written at last */
static void kill_tool(char *script, int death, char *said, size_t cap)
{
    char path[] = "/tmp/muster-test.XXXXXX";
    char *argv[] = {(char *)"sh", (char *)"-c", script, path, NULL};
    const struct command_plan plan = {.argv = argv, .death = death};
    int fd = mkstemp(path);
    memset(said, 0, cap);
    pid_t tool = fork();
    if (tool == 0) {
        struct commands *commands = commands_new(1);
        if (commands != NULL && commands_start(commands, &plan) == 0)
            commands_run(commands);
        _exit(1);
    }
    for (int i = 0; i < 1000 && strchr(said, '\n') == NULL; i++) {
        usleep(10000);
        assert_true(pread(fd, said, cap - 1, 0) >= 0);
    }
    kill(tool, SIGKILL);
    assert_int_equal(waitpid(tool, NULL, 0), tool);
    pid_t pid = (pid_t)atoi(said);
    assert_true(pid > 0);
    for (int i = 0; i < 1000 && runs(pid); i++)
        usleep(10000);
    assert_false(runs(pid));
    assert_true(pread(fd, said, cap - 1, 0) >= 0);
    close(fd);
    unlink(path);
}

static void killed(void **state)
{
    char said[64];
    (void)state;
    kill_tool((char *)"sleep 600 & echo $! >$0; wait", SIGKILL, said, sizeof said);
}

/* One that is to end in order has the time for it, as an srun that ends its step. */
static void killed_in_order(void **state)
{
    char said[64];
    (void)state;
    kill_tool(
        (char *)"trap 'sleep 0.5; echo in order >>$0; exit' TERM; sleep 600 & echo $! >$0; wait",
        SIGTERM, said, sizeof said);
    assert_non_null(strstr(said, "in order"));
}

static void not_there(void **state)
{
    char *argv[] = {(char *)"/nonexistent/tool", NULL};
    const struct command_plan plan = {.argv = argv, .death = SIGKILL};
    struct commands *commands = commands_new(1);
    (void)state;
    assert_int_equal(commands_start(commands, &plan), -1);
    assert_int_equal(commands_run(commands), 0);
    assert_true(commands_were_well(commands));
    commands_free(commands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks),       cmocka_unit_test(words),           cmocka_unit_test(tags),
        cmocka_unit_test(killed),      cmocka_unit_test(killed_in_order), cmocka_unit_test(ended),
        cmocka_unit_test(left_behind), cmocka_unit_test(not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
