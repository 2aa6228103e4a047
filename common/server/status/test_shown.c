/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of answers that wait until the user can see a line. The test plays the launcher.
 */
#include "common/server/status/shown.h"

#include "common/server/server.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

static struct server server;
static bool deaf; /* the launcher takes no question */
static unsigned nasked, ndone;

bool server_tell_launcher(unsigned char what)
{
    assert_int_equal(what, BOOT_SAYS_SHOW);
    nasked++;
    return !deaf;
}

static void done(struct shown_wait *wait)
{
    assert_null(wait->timer);
    ndone++;
}

static int begin(void **state)
{
    (void)state;
    server = (struct server){.base = event_base_new()};
    deaf = false;
    nasked = ndone = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    event_base_free(server.base);
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
    assert_null(first.timer);
    assert_non_null(third.timer);
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

/* It takes the two seconds that the server waits. */
static void launcher_does_not_answer(void **state)
{
    struct shown_wait wait = {.done = done, .server = &server};
    (void)state;
    shown_await(&wait);
    event_base_dispatch(server.base); /* until no event is left */
    assert_int_equal(ndone, 1);
    assert_null(server.shown);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

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
