/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is published: ranges, duplicates, persistence, permissions, bounds, and bytes that
 * others have written.
 */
#include "common/holder/store.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t numbers;

static struct store_who who(const char *nspace, uint32_t rank, const char *host)
{
    struct store_who w = {.rank = rank, .uid = 1000, .gid = 100};
    snprintf(w.nspace, sizeof w.nspace, "%s", nspace);
    snprintf(w.host, sizeof w.host, "%s", host);
    return w;
}

static struct store_entry *entry(struct store_who of, const char *key, enum store_range range,
                                 enum store_life life)
{
    struct store_entry *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->who = of;
    e->number = ++numbers;
    e->range = range;
    e->life = life;
    e->key = strdup(key);
    e->value = strdup("value");
    e->len = sizeof "value";
    return e;
}

static struct store_entry *seen(struct store *store, struct store_who by, enum store_range range,
                                const char *key)
{
    struct store_lookup lookup = {.who = by, .range = range};
    return store_find(store, &lookup, key);
}

static int setup(void **state)
{
    return (*state = store_new()) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    store_free(*state);
    return 0;
}

static void test_ranges(void **state)
{
    static const struct {
        enum store_range range;
        bool other_rank, other_node, other_job;
    } rows[] = {
        {STORE_SESSION, true, true, true},
        {STORE_NSPACE, true, true, false},
        {STORE_LOCAL, true, false, false},
        {STORE_SELF, false, false, false},
    };
    struct store_who me = who("a", 0, "n1");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(store_add(*state, entry(me, "k", rows[i].range, STORE_APP)), STORE_OK);
        assert_non_null(seen(*state, me, STORE_SESSION, "k"));
        assert_true((seen(*state, who("a", 1, "n1"), STORE_SESSION, "k") != NULL) ==
                    rows[i].other_rank);
        assert_true((seen(*state, who("a", 2, "n2"), STORE_SESSION, "k") != NULL) ==
                    rows[i].other_node);
        assert_true((seen(*state, who("b", 0, "n3"), STORE_SESSION, "k") != NULL) ==
                    rows[i].other_job);
        store_remove(*state, store_first(*state));
    }
}

/* A lookup that looks within a range sees publishers of that range alone. */
static void test_lookup_ranges(void **state)
{
    assert_int_equal(store_add(*state, entry(who("b", 0, "n1"), "k", STORE_SESSION, STORE_APP)),
                     STORE_OK);
    assert_null(seen(*state, who("a", 0, "n1"), STORE_NSPACE, "k"));
    assert_non_null(seen(*state, who("a", 0, "n1"), STORE_LOCAL, "k"));
    assert_null(seen(*state, who("a", 0, "n2"), STORE_LOCAL, "k"));
    assert_null(seen(*state, who("b", 1, "n1"), STORE_SELF, "k"));
}

static void test_custom(void **state)
{
    struct store_entry *e = entry(who("a", 0, "n1"), "k", STORE_CUSTOM, STORE_APP);
    procset_add(&e->custom, "b", 3, 4);
    procset_canonical(&e->custom);
    assert_int_equal(store_add(*state, e), STORE_OK);
    assert_non_null(seen(*state, who("b", 3, "n2"), STORE_SESSION, "k"));
    assert_null(seen(*state, who("b", 5, "n2"), STORE_SESSION, "k"));
    assert_null(seen(*state, who("a", 0, "n1"), STORE_SESSION, "k"));
}

/* The first one counts in each range; the narrower of two is found. */
static void test_duplicates(void **state)
{
    struct store_who a = who("a", 0, "n1"), b = who("b", 0, "n1");
    struct store_entry *twice = entry(a, "k", STORE_SESSION, STORE_APP), *again;
    assert_int_equal(store_add(*state, entry(b, "k", STORE_SESSION, STORE_APP)), STORE_OK);
    assert_int_equal(store_add(*state, twice), STORE_DUPLICATE);
    twice->range = STORE_NSPACE;
    assert_int_equal(store_add(*state, twice), STORE_OK);
    assert_string_equal(seen(*state, a, STORE_SESSION, "k")->who.nspace, "a");
    assert_string_equal(seen(*state, b, STORE_SESSION, "k")->who.nspace, "b");
    again = entry(a, "k", STORE_NSPACE, STORE_APP); /* the same one is said again */
    again->number = twice->number;
    assert_int_equal(store_add(*state, again), STORE_OK);
    assert_int_equal(store_counts(*state).entries, 2);
}

/* None of a call's entries is added when one could not be. */
static void test_together(void **state)
{
    struct store_list list = TAILQ_HEAD_INITIALIZER(list);
    struct store_entry *one = entry(who("a", 0, "n1"), "x", STORE_SESSION, STORE_APP),
                       *two = entry(who("a", 0, "n1"), "x", STORE_SESSION, STORE_APP);
    TAILQ_INSERT_TAIL(&list, one, link);
    assert_int_equal(store_may_add(*state, &list), STORE_OK);
    TAILQ_INSERT_TAIL(&list, two, link);
    assert_int_equal(store_may_add(*state, &list), STORE_DUPLICATE);
    store_entry_free(one);
    store_entry_free(two);
}

static void test_lives(void **state)
{
    struct store_who a = who("a", 0, "n1");
    for (enum store_life life = 0; life < STORE_LIVES; life++) {
        char key[2] = {(char)('0' + life), '\0'};
        assert_int_equal(store_add(*state, entry(a, key, STORE_SESSION, life)), STORE_OK);
    }
    assert_int_equal(store_ended(*state, "a", 1), 0);
    assert_int_equal(store_ended(*state, "b", 0), 0);
    assert_int_equal(store_ended(*state, "a", 0), 1);
    assert_null(seen(*state, a, STORE_SESSION, "3"));
    assert_int_equal(store_counts(*state).entries, 3);
}

static void test_unpublish(void **state)
{
    struct store_who a = who("a", 0, "n1"), b = who("a", 1, "n1");
    char key[] = "x", *keys[] = {key};
    store_add(*state, entry(a, "x", STORE_SESSION, STORE_APP));
    store_add(*state, entry(a, "y", STORE_NSPACE, STORE_APP));
    store_add(*state, entry(b, "z", STORE_SESSION, STORE_APP));
    assert_int_equal(store_unpublish(*state, &b, keys, 1, STORE_RANGES), 0);
    assert_int_equal(store_unpublish(*state, &a, keys, 1, STORE_NSPACE), 0);
    assert_int_equal(store_unpublish(*state, &a, keys, 1, STORE_RANGES), 1);
    assert_int_equal(store_unpublish(*state, &a, NULL, 0, STORE_RANGES), 1);
    assert_int_equal(store_counts(*state).entries, 1);
    assert_int_equal(store_counts(*state).bytes > 0, 1);
}

static void test_permissions(void **state)
{
    struct store_who other = who("b", 0, "n2");
    struct store_entry *e = entry(who("a", 0, "n1"), "k", STORE_SESSION, STORE_APP);
    e->has_gids = true;
    e->gids = calloc(1, sizeof *e->gids);
    e->gids[0] = 200;
    e->ngids = 1;
    assert_int_equal(store_add(*state, e), STORE_OK);
    assert_null(seen(*state, other, STORE_SESSION, "k"));
    assert_non_null(seen(*state, e->who, STORE_SESSION, "k"));
    other.gid = 200;
    assert_non_null(seen(*state, other, STORE_SESSION, "k"));
}

static void test_bounds(void **state)
{
    char key[32];
    uint32_t n = 0, jobs = 0;
    enum store_answer answer = STORE_OK;
    for (; jobs < 64 && answer == STORE_OK; jobs++) {
        char job[16];
        snprintf(job, sizeof job, "job%u", jobs);
        for (n = 0; n < 20; n++) {
            struct store_entry *e = entry(who(job, 0, "n1"), "", STORE_SESSION, STORE_APP);
            snprintf(key, sizeof key, "%s.%u", job, n);
            free(e->key);
            free(e->value);
            e->key = strdup(key);
            e->len = STORE_NSPACE_MAX / 8;
            e->value = calloc(1, e->len);
            answer = store_add(*state, e);
            if (answer == STORE_OK)
                continue;
            assert_int_equal(answer, STORE_FULL);
            store_entry_free(e);
            break;
        }
        assert_true(n <= 8);
        if (n == 7) /* this namespace is full, and the next one is not */
            answer = STORE_OK;
    }
    assert_true(jobs > 8 && jobs < 64);
    assert_true(store_counts(*state).bytes <= STORE_MAX);
}

/* Cut anywhere, it is refused; whole, it comes out as it went in. */
static void test_bytes(void **state)
{
    struct store_entry *e = entry(who("a", 7, "n1"), "key", STORE_CUSTOM, STORE_PROC), *got;
    struct wire_out out = {0};
    struct wire_in in;
    (void)state;
    e->has_uids = true;
    e->uids = calloc(2, sizeof *e->uids);
    e->nuids = 2;
    procset_add(&e->custom, "b", 1, 2);
    procset_canonical(&e->custom);
    store_put_entry(&out, e);
    for (size_t len = 0; len < out.len; len++) {
        wire_in_init(&in, out.data, len);
        assert_null(store_get_entry(&in));
        assert_true(in.bad);
    }
    wire_in_init(&in, out.data, out.len);
    got = store_get_entry(&in);
    assert_true(got != NULL && wire_end(&in));
    assert_string_equal(got->key, "key");
    assert_true(got->who.rank == 7 && got->nuids == 2 && got->has_uids && !got->has_gids);
    assert_true(got->range == STORE_CUSTOM && got->life == STORE_PROC && got->len == e->len);
    assert_true(procset_has(&got->custom, "b", 2));
    store_entry_free(got);
    store_entry_free(e);
    wire_out_free(&out);
}

static void test_lookup_bytes(void **state)
{
    char one[] = "one", two[] = "two", *keys[] = {one, two};
    struct store_lookup lookup = {.who = who("a", 1, "n1"), .want = 2, .left = 5, .nkeys = 2};
    struct store_lookup got;
    struct wire_out out = {0};
    struct wire_in in;
    (void)state;
    lookup.keys = keys;
    store_put_lookup(&out, &lookup);
    for (size_t len = 0; len < out.len; len++) {
        wire_in_init(&in, out.data, len);
        assert_int_equal(store_get_lookup(&in, &got), -1);
        store_free_lookup(&got);
    }
    wire_in_init(&in, out.data, out.len);
    assert_int_equal(store_get_lookup(&in, &got), 0);
    assert_true(got.nkeys == 2 && got.want == 2 && got.left == 5);
    assert_string_equal(got.keys[1], "two");
    store_free_lookup(&got);
    wire_out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lookup_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_custom, setup, teardown),
        cmocka_unit_test_setup_teardown(test_duplicates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unpublish, setup, teardown),
        cmocka_unit_test_setup_teardown(test_permissions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_lookup_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
