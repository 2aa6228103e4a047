/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of lists of processes: the order is kept, few runs are made, bytes are read as written.
 */
#include "common/tracker/values/proclist.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

static void assert_ranks(const struct proclist *list, const uint32_t *ranks, uint32_t n)
{
    const char *nspace;
    uint32_t i = 0, rank;
    for (struct proclist_at at = {0}; proclist_next(list, &at); i++) {
        assert_true(i < n);
        assert_int_equal(at.rank, ranks[i]);
        assert_true(proclist_at(list, i, &nspace, &rank));
        assert_int_equal(rank, ranks[i]);
        assert_string_equal(nspace, at.nspace);
    }
    assert_int_equal(i, n);
    assert_int_equal(proclist_size(list), n);
    assert_false(proclist_at(list, n, &nspace, &rank));
}

static void order_is_kept_in_few_runs(void **state)
{
    static const struct {
        uint32_t n, ranks[8], runs;
    } rows[] = {
        {4, {0, 1, 2, 3}, 1},    {4, {3, 2, 1, 0}, 1},    {4, {2, 3, 0, 1}, 2},
        {5, {3, 4, 3, 2, 1}, 2}, {4, {5, 1, 7, 3}, 4},    {3, {1, 1, 1}, 3},
        {2, {UINT32_MAX, 0}, 2}, {2, {0, UINT32_MAX}, 2}, {6, {1, 0, 1, 2, 1, 0}, 3},
        {1, {UINT32_MAX}, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proclist list = {0};
        for (uint32_t k = 0; k < rows[i].n; k++)
            assert_int_equal(proclist_add(&list, "job", rows[i].ranks[k], rows[i].ranks[k]), 0);
        assert_ranks(&list, rows[i].ranks, rows[i].n);
        assert_int_equal(list.n, rows[i].runs);
        proclist_free(&list);
    }
}

static void runs_join_in_their_direction_alone(void **state)
{
    static const uint32_t ranks[] = {0, 1, 2, 3, 4, 9, 8, 7, 6, 7};
    struct proclist list = {0};
    (void)state;
    assert_int_equal(proclist_add(&list, "job", 0, 2), 0);
    assert_int_equal(proclist_add(&list, "job", 3, 4), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(proclist_add(&list, "job", 9, 8), 0);
    assert_int_equal(proclist_add(&list, "job", 7, 6), 0);
    assert_int_equal(list.n, 2);
    assert_int_equal(proclist_add(&list, "job", 7, 7), 0);
    assert_ranks(&list, ranks, 10);
    proclist_free(&list);
    assert_int_equal(proclist_add(&list, "", 0, 0), -1);
    proclist_free(&list);
}

static void only_new_ones_are_added(void **state)
{
    static const uint32_t ranks[] = {7, 5, 1, 9, 3};
    struct proclist list = {0}, more = {0};
    struct procset but = {0};
    (void)state;
    assert_int_equal(procset_add(&but, "job", 2, 2), 0);
    procset_canonical(&but);
    assert_int_equal(proclist_add(&more, "job", 7, 7), 0);
    assert_int_equal(proclist_add(&more, "job", 5, 5), 0);
    assert_int_equal(proclist_add(&more, "job", 2, 1), 0);
    assert_int_equal(proclist_add_new(&list, &more, &but), 0);
    /* Again, with some that are named twice. */
    assert_int_equal(proclist_add(&more, "job", 9, 9), 0);
    assert_int_equal(proclist_add(&more, "job", 3, 3), 0);
    assert_int_equal(proclist_add(&more, "job", 9, 9), 0);
    assert_int_equal(proclist_add_new(&list, &more, &but), 0);
    assert_ranks(&list, ranks, 5);
    assert_int_equal(procset_size(&but), 6);
    proclist_free(&list);
    proclist_free(&more);
    procset_free(&but);
}

static void lists_have_an_order(void **state)
{
    struct proclist a = {0}, b = {0};
    (void)state;
    assert_int_equal(proclist_compare(&a, &b), 0);
    assert_int_equal(proclist_add(&a, "a", 3, 1), 0);
    assert_true(proclist_compare(&a, &b) > 0);
    assert_true(proclist_compare(&b, &a) < 0);
    assert_int_equal(proclist_add(&b, "a", 3, 2), 0);
    assert_true(proclist_compare(&a, &b) > 0);
    assert_int_equal(proclist_add(&b, "b", 0, 0), 0);
    assert_true(proclist_compare(&a, &b) < 0);
    proclist_free(&b);
    assert_int_equal(proclist_add(&b, "a", 3, 1), 0);
    assert_int_equal(proclist_compare(&a, &b), 0);
    proclist_free(&a);
    proclist_free(&b);
}

static void bytes_are_read_as_written(void **state)
{
    struct proclist list = {0};
    struct wire_out out = {0};
    (void)state;
    assert_int_equal(proclist_add(&list, "b", 3, 0), 0);
    assert_int_equal(proclist_add(&list, "a", 0, 5), 0);
    assert_int_equal(proclist_add(&list, "b", 7, 7), 0);
    proclist_write(&list, &out);
    for (size_t len = 0; len <= out.len; len++) {
        struct proclist again = {0};
        struct wire_in in;
        wire_in_init(&in, out.data, len);
        proclist_read(&again, &in);
        assert_int_equal(wire_end(&in), len == out.len);
        assert_int_equal(proclist_compare(&again, &list) == 0, len == out.len);
        proclist_free(&again);
    }
    out.data[4 + 4 + 1 + 4 + 1 + 4 + 3] = 2; /* the first run's namespace: there is none */
    struct wire_in in;
    wire_in_init(&in, out.data, out.len);
    struct proclist bad = {0};
    proclist_read(&bad, &in);
    assert_false(wire_end(&in));
    proclist_free(&bad);
    proclist_free(&list);
    wire_out_free(&out);
}

/* A list of some bytes may have thousands of millions of processes. */
static void too_many_are_not_read(void **state)
{
    (void)state;
    for (uint32_t last = PROCLIST_MAX - 1; last <= PROCLIST_MAX; last++) {
        struct proclist list = {0}, again = {0};
        struct wire_out out = {0};
        struct wire_in in;
        assert_int_equal(proclist_add(&list, "a", 0, last), 0);
        proclist_write(&list, &out);
        wire_in_init(&in, out.data, out.len);
        proclist_read(&again, &in);
        assert_int_equal(wire_end(&in), last < PROCLIST_MAX);
        proclist_free(&list);
        proclist_free(&again);
        wire_out_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_kept_in_few_runs),
        cmocka_unit_test(runs_join_in_their_direction_alone),
        cmocka_unit_test(only_new_ones_are_added),
        cmocka_unit_test(lists_have_an_order),
        cmocka_unit_test(bytes_are_read_as_written),
        cmocka_unit_test(too_many_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
