/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of sets of numbers and of servers' places, against arrays that say the same.
 */
#include "common/tracker/values/places.h"
#include "common/tracker/values/ranges.h"
#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

enum { MAX = 60, ROUNDS = 2000 };

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void numbers_in_any_order(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        bool has[MAX] = {0};
        struct ranges set = {0};
        uint32_t count = 0;
        for (uint32_t n = below(8); n > 0; n--) {
            uint32_t first = below(MAX), last = first + below(MAX - first);
            if (round % 2)
                last = first;
            for (uint32_t i = first; i <= last; i++)
                has[i] = true;
            assert_int_equal(round % 2 ? ranges_put(&set, first) : ranges_add(&set, first, last),
                             0);
        }
        ranges_canonical(&set);
        for (uint32_t i = 0; i < MAX; i++) {
            assert_int_equal(ranges_have(&set, i), has[i]);
            count += has[i];
        }
        assert_int_equal(ranges_count(&set), count);
        for (uint32_t i = 1; i < set.n; i++)
            assert_true(set.v[i].first > set.v[i - 1].last + 1);
        ranges_free(&set);
    }
}

static void numbers_as_bytes(void **state)
{
    struct ranges set = {0}, back = {0};
    struct wire_out out = {0};
    struct wire_in in;
    (void)state;
    ranges_add(&set, 1, 3);
    ranges_add(&set, 7, 7);
    ranges_add(&set, 0xfffffffe, 0xffffffff);
    ranges_canonical(&set);
    ranges_write(&set, 2, &out);
    wire_in_init(&in, out.data, out.len);
    ranges_read(&back, 7, &in);
    assert_true(wire_end(&in));
    assert_int_equal(ranges_count(&back), 4);
    ranges_free(&back);
    wire_in_init(&in, out.data, out.len);
    ranges_read(&back, 6, &in); /* 7 is too much */
    assert_false(wire_end(&in));
    ranges_free(&back);
    wire_out_free(&out);
    ranges_free(&set);
}

static void a_walk_through_numbers(void **state)
{
    static const uint32_t expected[] = {0, 7, 8, 0xfffffffe, 0xffffffff};
    struct ranges set = {0}, more = {0};
    struct ranges_at at = {0};
    (void)state;
    assert_false(ranges_next(&set, &at));
    ranges_add(&set, 0xfffffffe, 0xffffffff);
    ranges_add(&set, 0, 0);
    ranges_add(&more, 7, 8);
    assert_int_equal(ranges_unite(&set, &more), 0);
    ranges_canonical(&set);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(ranges_next(&set, &at));
        assert_int_equal(at.number, expected[i]);
    }
    assert_false(ranges_next(&set, &at));
    ranges_free(&set);
    ranges_free(&more);
}

static void numbers_that_are_no_set(void **state)
{
    static const uint32_t bad[][4] = {{3, 2, 9, 9}, {1, 3, 3, 5}, {1, 3, 4, 5}, {5, 6, 1, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ranges set = {0};
        struct wire_out out = {0};
        struct wire_in in;
        wire_put_u32(&out, 2);
        for (int k = 0; k < 4; k++)
            wire_put_u32(&out, bad[i][k]);
        wire_in_init(&in, out.data, out.len);
        ranges_read(&set, UINT32_MAX, &in);
        assert_false(wire_end(&in));
        ranges_free(&set);
        wire_out_free(&out);
    }
}

/* @param mixed whether servers come in any order, as those of several namespaces do */
static void check_places(bool mixed)
{
    uint32_t nodes[MAX], n = 0, next = 0;
    struct places places = {0};
    while (n < MAX / 2 && next < 1000) {
        uint32_t many = 1 + below(4);
        uint32_t first = mixed ? 1000 - 10 * next - 10 : next + below(3);
        assert_int_equal(places_add(&places, first, many), 0);
        for (uint32_t i = 0; i < many; i++)
            nodes[n++] = first + i;
        next = mixed ? next + 1 : first + many;
    }
    assert_int_equal(places.n, n);
    for (uint32_t slot = 0; slot < n; slot++) {
        assert_int_equal(places_node(&places, slot), nodes[slot]);
        assert_int_equal(places_slot(&places, nodes[slot]), slot);
    }
    for (uint32_t node = 0; node < 1100; node++) {
        bool there = false;
        for (uint32_t i = 0; i < n; i++)
            there = there || nodes[i] == node;
        assert_int_equal(places_slot(&places, node) != PLACES_NONE, there);
    }
    places_free(&places);
}

static void places_of_servers(void **state)
{
    struct places none = {0}, all = {0};
    (void)state;
    for (int round = 0; round < 200; round++)
        check_places(round % 2);
    assert_int_equal(places_slot(&none, 0), PLACES_NONE);
    assert_int_equal(places_add(&all, 0, 65536), 0);
    assert_int_equal(places_add(&all, 65536, 4), 0); /* one run */
    assert_int_equal(all.nruns, 1);
    assert_int_equal(places_slot(&all, 65539), 65539);
    assert_int_equal(places_add(&all, 70000, UINT32_MAX), -1);
    places_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_any_order),   cmocka_unit_test(numbers_as_bytes),
        cmocka_unit_test(a_walk_through_numbers), cmocka_unit_test(numbers_that_are_no_set),
        cmocka_unit_test(places_of_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
