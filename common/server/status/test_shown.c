/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of answers that wait until the user can see a line. The test plays the launcher.
 */
#include "common/server/status/shown.h"

#include "common/server/server.h"
#include "common/util/test_cmocka.h"

static struct server server;
static bool deaf; /* the launcher takes no question */
static unsigned nasked, ndone;
static int64_t now = 1000;

bool server_tell_launcher(unsigned char what)
{
    assert_int_equal(what, BOOT_SAYS_SHOW);
    nasked++;
    return !deaf;
}

static void done(struct shown_wait *wait)
{
    assert_false(timer_runs(&wait->patience));
    ndone++;
}

static int64_t clock_of(void *arg)
{
    (void)arg;
    return now;
}

static int begin(void **state)
{
    (void)state;
    server = (struct server){.timers = {.now = clock_of}};
    deaf = false;
    nasked = ndone = 0;
    return 0;
}

static void goes_on_when_it_is_shown(void **state)
{
    struct shown_wait first = {.done = done, .server = &server}, second = first, third = first;
    (void)state;
    shown_await(&first);
    shown_await(&second);
    shown_await(&third);
    assert_int_equal(nasked, 3);
    assert_int_equal(ndone, 0);
    shown_take(&server, 2);
    assert_int_equal(ndone, 2);
    assert_false(timer_runs(&first.patience));
    assert_true(timer_runs(&third.patience));
    shown_take(&server, 1);
    assert_int_equal(ndone, 3);
    shown_take(&server, 1); /* too much of an answer */
    assert_int_equal(ndone, 3);
}

static void is_forgotten(void **state)
{
    struct shown_wait first = {.done = done, .server = &server}, second = first, never = first;
    (void)state;
    shown_forget(&never);
    shown_await(&first);
    shown_await(&second);
    shown_forget(&first);
    shown_forget(&first);
    shown_take(&server, 2);
    assert_int_equal(ndone, 1);
    assert_null(server.shown);
}

static void launcher_cannot_be_asked(void **state)
{
    struct shown_wait wait = {.done = done, .server = &server};
    (void)state;
    deaf = true;
    shown_await(&wait);
    assert_int_equal(ndone, 1);
    assert_null(server.shown);
}

static void launcher_does_not_answer(void **state)
{
    struct shown_wait wait = {.done = done, .server = &server};
    (void)state;
    shown_await(&wait);
    assert_int_equal(timers_wait(&server.timers), 2000);
    now += 2000;
    timers_run(&server.timers);
    assert_int_equal(ndone, 1);
    assert_null(server.shown);
}

#define TEST(t) cmocka_unit_test_setup(t, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(goes_on_when_it_is_shown),
        TEST(is_forgotten),
        TEST(launcher_cannot_be_asked),
        TEST(launcher_does_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
