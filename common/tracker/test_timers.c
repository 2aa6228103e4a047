/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the heap of timers, against an array that is walked.
 */
#include "common/tracker/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MAX = 40, ROUNDS = 20000 };

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void the_first_one_is_found(void **state)
{
    struct timers timers = {0};
    struct timer all[MAX] = {0};
    (void)state;
    assert_null(timers_first(&timers));
    for (int round = 0; round < ROUNDS; round++) {
        struct timer *one = &all[below(MAX)];
        uint64_t first = UINT64_MAX;
        uint32_t n = 0;
        assert_int_equal(timers_reserve(&timers), 0);
        timers_set(&timers, one, below(3) == 0 ? UINT64_MAX : below(100));
        for (int i = 0; i < MAX; i++) {
            n += all[i].place != 0;
            if (all[i].place != 0 && all[i].at < first)
                first = all[i].at;
        }
        assert_int_equal(timers.n, n);
        assert_int_equal(timers_first(&timers) == NULL, n == 0);
        if (n > 0)
            assert_int_equal(timers_first(&timers)->at, first);
    }
    timers_free(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_one_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
