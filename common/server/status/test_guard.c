/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what becomes of tasks that a tool has stopped.
 */
#include "common/server/status/guard.h"
#include "common/server/status/test_status_kit.h"
#include "common/util/log.h"
#include "common/util/proctab.h"
#include "common/util/test_cmocka.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kit *kit;
static struct guards *guards;
static pid_t children[2];

static void wait_for_stop(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

static void stop(pid_t pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    wait_for_stop(pid);
}

static pid_t start(void)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

static int open_kit(void **state)
{
    (void)state;
    kit = kit_new(1, 2);
    for (int i = 0; i < 2; i++) {
        children[i] = start();
        kit->server.tasks[i].pid = children[i];
    }
    guards = guards_open(&kit->server);
    return guards == NULL;
}

static int close_kit(void **state)
{
    (void)state;
    guards_close(guards);
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    kit_free(kit);
    return 0;
}

static bool is_stopped(pid_t pid)
{
    struct proctab tab;
    assert_int_equal(proctab_read(&tab), 0);
    const struct proctab_entry *entry = proctab_find(&tab, pid);
    assert_non_null(entry);
    assert_int_equal(entry->parent, getpid());
    char letter = entry->state;
    proctab_free(&tab);
    return letter == 'T';
}

static void pass(int ms)
{
    kit->now += ms;
    timers_run(&kit->server.timers);
}

static void killed(void **state)
{
    (void)state;
    stop(children[0]); /* by its user */
    struct guard *guard = guard_begin(guards);
    stop(children[1]);
    guard_end(guard, false);
    pass(1);
    assert_true(is_stopped(children[0]));
    assert_false(is_stopped(children[1]));
    stop(children[1]); /* as the tool's debugger ends a little later */
    pass(200);
    assert_false(is_stopped(children[1]));
    for (int i = 0; i < 4; i++)
        pass(200);
    stop(children[1]);
    pass(200);
    assert_true(is_stopped(children[1])); /* no longer */
}

static void all_is_well(void **state)
{
    (void)state;
    struct guard *guard = guard_begin(guards);
    stop(children[1]);
    guard_end(guard, true);
    pass(1);
    assert_true(is_stopped(children[1]));
}

static void paused(void **state)
{
    (void)state;
    struct guard *guard = guard_begin(guards);
    procset_add(&kit->server.paused, kit->server.boot.nspace, 1, 1);
    procset_canonical(&kit->server.paused);
    stop(children[0]);
    stop(children[1]);
    guard_end(guard, false);
    pass(1);
    assert_false(is_stopped(children[0]));
    assert_true(is_stopped(children[1]));
    procset_free(&kit->server.paused);
}

static void another_process(void **state)
{
    (void)state;
    pid_t other = start();
    struct guard *guard = guard_begin(guards);
    stop(other);
    guard_end(guard, false);
    pass(1);
    assert_true(is_stopped(other));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void too_many_at_a_time(void **state)
{
    struct guard *guard[32];
    size_t n = 0;
    (void)state;
    while (n < 32 && (guard[n] = guard_begin(guards)) != NULL)
        n++;
    assert_int_equal(n, 6);
    while (n > 1)
        guard_end(guard[--n], true);
    guard[1] = guard_begin(guards);
    assert_non_null(guard[1]);
}

/* The server ends: what the tool has stopped goes on. */
static void the_end(void **state)
{
    (void)state;
    assert_non_null(guard_begin(guards));
    stop(children[1]);
    guards_close(guards);
    guards = NULL;
    assert_false(is_stopped(children[1]));
}

static void quiet(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
    const struct CMUnitTest tests[] = {
        TEST(killed),          TEST(all_is_well),        TEST(paused),
        TEST(another_process), TEST(too_many_at_a_time), TEST(the_end),
    };
    log_open(quiet, NULL, LOG_LEVEL_DEBUG, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
