/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the heap of timers, against an array that is walked.
 */
#include "common/tracker/values/timers.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>

enum { MAX = 40, ROUNDS = 20000 };

static uint32_t seed = 1;
static struct timers *all_timers;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void later(void *arg, struct timer *timer, uint64_t now)
{
    uint32_t *fired = arg;
    ++*fired;
    assert_true(timer->at <= now);
    timers_set(all_timers, timer, now + 1 + below(100));
}

static void the_first_one_is_found(void **state)
{
    struct timers timers = {0};
    struct timer all[MAX] = {0};
    (void)state;
    assert_true(timers_next(&timers) == TIMER_NEVER);
    for (int round = 0; round < ROUNDS; round++) {
        struct timer *one = &all[below(MAX)];
        uint64_t first = TIMER_NEVER, at = below(10) == 0 ? TIMER_NEVER : below(100);
        uint32_t n = 0;
        if (one->place == 0)
            assert_int_equal(timers_start(&timers, one, at, later), 0);
        else if (below(3) == 0)
            timers_stop(&timers, one);
        else if (below(2) == 0)
            timers_set(&timers, one, at);
        else
            timers_sooner(&timers, one, at);
        for (int i = 0; i < MAX; i++) {
            n += all[i].place != 0;
            if (all[i].place != 0 && all[i].at < first)
                first = all[i].at;
        }
        assert_int_equal(timers.n, n);
        assert_true(timers_next(&timers) == first);
    }
    timers_free(&timers);
}

static void stop_another(void *arg, struct timer *timer, uint64_t now)
{
    uint32_t *fired = arg;
    (void)now;
    ++*fired;
    timers_stop(all_timers, timer);
}

static void all_that_are_due_fire_until_none_is(void **state)
{
    struct timers timers = {0};
    struct timer all[MAX] = {0};
    uint32_t fired = 0, due = 0;
    (void)state;
    all_timers = &timers;
    for (int i = 0; i < MAX; i++) {
        uint64_t at = i % 5 == 0 ? TIMER_NEVER : below(100);
        due += at <= 50;
        assert_int_equal(timers_start(&timers, &all[i], at, i % 2 == 0 ? later : stop_another), 0);
    }
    timers_fire(&timers, &fired, 50);
    assert_int_equal(fired, due);
    assert_true(timers_next(&timers) > 50);
    for (int i = 0; i < MAX; i++)
        timers_stop(&timers, &all[i]);
    assert_int_equal(timers.n, 0);
    timers_free(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_one_is_found),
                                       cmocka_unit_test(all_that_are_due_fire_until_none_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
