/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the heap of timers, against an array that is walked.
 */
#include "common/util/timers.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

enum { MAX = 40, ROUNDS = 20000 };

static uint32_t seed = 1;
static int64_t clock_ms;
static uint32_t fired;

static int64_t played(void *arg)
{
    (void)arg;
    return clock_ms;
}

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void once(void *arg, struct timer *timer)
{
    struct timer *all = arg;
    fired++;
    assert_false(timer_runs(timer));
    assert_true(timer >= all && timer < all + MAX);
}

static void again(void *arg, struct timer *timer)
{
    once(arg, timer);
    timer_after(timer, 1 + below(100));
}

static void stop_another(void *arg, struct timer *timer)
{
    struct timer *all = arg;
    once(arg, timer);
    timer_stop(&all[(timer - all + 1) % MAX]);
}

static void the_first_one_is_found(void **state)
{
    struct timers timers = {.now = played};
    struct timer all[MAX] = {0};
    (void)state;
    clock_ms = 0;
    for (int i = 0; i < MAX; i++)
        timer_init(&all[i], &timers, once, all);
    assert_int_equal(timers_wait(&timers), -1);
    for (int round = 0; round < ROUNDS; round++) {
        struct timer *one = &all[below(MAX)];
        int64_t first = 0, before = one->at, at = below(10) == 0 ? 0 : 1 + below(100);
        uint32_t how = below(4);
        if (how == 0)
            timer_stop(one);
        else if (how == 1)
            timer_sooner(one, at);
        else if (how == 2 && at != 0)
            timer_after(one, at);
        else
            timer_at(one, at);
        if (how == 0)
            assert_false(timer_runs(one));
        else
            assert_int_equal(one->at, how == 1 ? earlier(before, at) : at);
        for (int i = 0; i < MAX; i++)
            first = earlier(first, all[i].at);
        assert_int_equal(timers_wait(&timers), first != 0 ? first : -1);
    }
}

static void all_that_are_due_are_called_in_order_until_none_is(void **state)
{
    struct timers timers = {.now = played};
    struct timer all[MAX] = {0};
    int64_t last = 0;
    uint32_t n = 0;
    (void)state;
    for (int i = 0; i < MAX; i++) {
        timer_init(&all[i], &timers, i % 2 == 0 ? again : once, all);
        timer_at(&all[i], i % 5 == 0 ? 0 : 1 + below(100));
        n += all[i].at != 0 && all[i].at <= 50;
    }
    fired = 0;
    clock_ms = 50;
    while (timers.first != NULL && timers.first->at <= clock_ms) {
        assert_true(timers.first->at >= last);
        last = timers.first->at;
        assert_true(timers_run_one(&timers));
    }
    assert_false(timers_run_one(&timers));
    assert_int_equal(fired, n);
    clock_ms = 1000;
    for (int i = 0; i < MAX; i++)
        all[i].fire = once;
    timers_run(&timers);
    assert_int_equal(timers_wait(&timers), -1);
}

static void a_timer_may_stop_others_when_it_is_due(void **state)
{
    struct timers timers = {.now = played};
    struct timer all[MAX] = {0};
    (void)state;
    clock_ms = 50;
    for (int i = 0; i < MAX; i++) {
        timer_init(&all[i], &timers, stop_another, all);
        timer_at(&all[i], 1 + i);
    }
    fired = 0;
    timers_run(&timers);
    assert_int_equal(fired, MAX / 2);
}

/* All zero: the machine's clock. */
static void without_a_clock_it_is_the_machines(void **state)
{
    struct timers timers = {0};
    struct timer one = {0};
    (void)state;
    timer_init(&one, &timers, once, &one);
    timer_after(&one, 100000);
    assert_in_range(timers_wait(&timers), 1, 100000);
    timer_at(&one, now_ms());
    fired = 0;
    timers_run(&timers);
    assert_int_equal(fired, 1);
}

static void the_clock_of_deadlines_stands_still(void **state)
{
    struct timers timers = {.now = played};
    (void)state;
    clock_ms = 1000;
    int64_t deadline = timers_clock(&timers) + 500;
    assert_int_equal(timers_due(&timers, deadline), 1500);
    assert_int_equal(timers_due(&timers, 0), 0);
    clock_ms = 1200;
    assert_true(timers_stand(&timers, true));
    assert_false(timers_stand(&timers, true));
    clock_ms = 9000;
    assert_int_equal(timers_clock(&timers), 1200);
    assert_int_equal(timers_due(&timers, deadline), 10000); /* looked at again */
    assert_true(timers_stand(&timers, false));
    assert_int_equal(timers_due(&timers, deadline), 9300);
    clock_ms = 9100;
    assert_int_equal(timers_clock(&timers), 1300);
    assert_true(timers_stand(&timers, true)); /* once more: the times add up */
    clock_ms = 9150;
    assert_true(timers_stand(&timers, false));
    assert_int_equal(timers_due(&timers, deadline), 9350);
    assert_int_equal(timers_clock(&timers), 1300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_is_found),
        cmocka_unit_test(all_that_are_due_are_called_in_order_until_none_is),
        cmocka_unit_test(a_timer_may_stop_others_when_it_is_due),
        cmocka_unit_test(the_clock_of_deadlines_stands_still),
        cmocka_unit_test(without_a_clock_it_is_the_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
