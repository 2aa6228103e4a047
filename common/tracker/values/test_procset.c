/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of process sets: one canonical form, its bytes, what is refused, and who goes on without
 * some.
 */
#include "ci/loopback/loopback.h"
#include "common/tracker/values/retry.h"
#include "common/tracker/values/signature.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES = 3, RANKS = 64 };

static const char *const names[NAMES] = {"job.10", "job.9", "a"};

static void assert_canonical(const struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct procset_part *part = &set->parts[i];
        assert_true(i == 0 || strcmp(part[-1].nspace, part->nspace) < 0);
        assert_true(part->ranks.n > 0);
        for (uint32_t j = 0; j < part->ranks.n; j++) {
            assert_true(part->ranks.v[j].first <= part->ranks.v[j].last);
            assert_true(j == 0 || (uint64_t)part->ranks.v[j - 1].last + 1 < part->ranks.v[j].first);
        }
    }
}

static void assert_same_bytes(const struct procset *a, const struct procset *b)
{
    struct wire_out x = {0}, y = {0};
    procset_write(a, &x);
    procset_write(b, &y);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    wire_out_free(&x);
    wire_out_free(&y);
}

/* Adds the members of a model one by one, in a random order. */
static void rebuild(struct procset *set, bool model[NAMES][RANKS], struct loopback_random *random)
{
    uint32_t order[NAMES * RANKS];
    for (uint32_t i = 0; i < NAMES * RANKS; i++) {
        uint32_t k = loopback_below(random, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < NAMES * RANKS; i++) {
        uint32_t name = order[i] / RANKS, rank = order[i] % RANKS;
        if (model[name][rank])
            assert_int_equal(procset_add(set, names[name], rank, rank), 0);
    }
    procset_canonical(set);
}

static void random_sets_equal_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct loopback_random random = {seed};
        bool model[NAMES][RANKS] = {{false}};
        struct procset set = {0}, again = {0};
        uint64_t size = 0;
        for (uint32_t adds = loopback_below(&random, 12); adds > 0; adds--) {
            uint32_t name = loopback_below(&random, NAMES);
            uint32_t first = loopback_below(&random, RANKS);
            uint32_t last = first + loopback_below(&random, RANKS - first) / 4;
            assert_int_equal(procset_add(&set, names[name], first, last), 0);
            for (uint32_t r = first; r <= last; r++)
                model[name][r] = true;
        }
        procset_canonical(&set);
        assert_canonical(&set);
        for (uint32_t name = 0; name < NAMES; name++)
            for (uint32_t r = 0; r < RANKS; r++) {
                size += model[name][r];
                assert_int_equal(procset_has(&set, names[name], r), model[name][r]);
            }
        assert_int_equal(procset_size(&set), size);
        rebuild(&again, model, &random);
        assert_same_bytes(&set, &again);
        procset_free(&set);
        procset_free(&again);
    }
}

static void fill(struct procset *set, bool model[NAMES][RANKS])
{
    for (uint32_t i = 0; i < NAMES; i++)
        for (uint32_t r = 0; r < RANKS; r++)
            if (model[i][r])
                assert_int_equal(procset_add(set, names[i], r, r), 0);
    procset_canonical(set);
}

static void unions_and_differences_equal_a_model(void **state)
{
    struct loopback_random random = {.state = 5};
    (void)state;
    for (int run = 0; run < 500; run++) {
        bool a[NAMES][RANKS], b[NAMES][RANKS], either[NAMES][RANKS], only[NAMES][RANKS];
        struct procset x = {0}, y = {0}, both = {0}, rest = {0}, expected = {0}, left = {0};
        uint32_t density = loopback_below(&random, 100);
        for (uint32_t i = 0; i < NAMES; i++)
            for (uint32_t r = 0; r < RANKS; r++) {
                a[i][r] = loopback_below(&random, 100) < density;
                b[i][r] = loopback_below(&random, 100) < 50;
                either[i][r] = a[i][r] || b[i][r];
                only[i][r] = a[i][r] && !b[i][r];
            }
        fill(&x, a);
        fill(&y, b);
        fill(&expected, either);
        fill(&left, only);
        assert_int_equal(procset_unite(&both, &x), 0);
        assert_int_equal(procset_unite(&both, &y), 0);
        assert_int_equal(procset_except(&rest, &x, &y), 0);
        assert_canonical(&rest);
        assert_same_bytes(&both, &expected);
        assert_same_bytes(&rest, &left);
        assert_true(procset_within(&x, &both));
        assert_true(procset_within(&x, &y) == (rest.nparts == 0));
        struct procset *const sets[] = {&x, &y, &both, &rest, &expected, &left};
        for (int i = 0; i < 6; i++)
            procset_free(sets[i]);
    }
}

static void bytes_round_trip(void **state)
{
    struct procset set = {0}, read = {0};
    struct wire_out out = {0};
    struct wire_in in;
    char longest[PROCSET_NAME_MAX + 1];
    (void)state;
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    procset_add(&set, longest, 0, 0xffffffff);
    procset_add(&set, "b", 7, 9);
    procset_add(&set, "b", 1, 2);
    procset_canonical(&set);
    procset_write(&set, &out);
    wire_in_init(&in, out.data, out.len);
    procset_read(&read, &in);
    assert_true(wire_end(&in));
    assert_same_bytes(&set, &read);
    procset_free(&read);
    for (size_t len = 0; len < out.len; len++) { /* cut anywhere */
        read = (struct procset){0};
        wire_in_init(&in, out.data, len);
        procset_read(&read, &in);
        assert_false(wire_end(&in));
        procset_free(&read);
    }
    wire_out_free(&out);
    procset_free(&set);
}

static void the_last_rank(void **state)
{
    struct procset set = {0};
    (void)state;
    procset_add(&set, "j", 0xffffffff, 0xffffffff);
    procset_add(&set, "j", 0, 0); /* not adjacent to the last one */
    procset_canonical(&set);
    assert_int_equal(procset_size(&set), 2);
    assert_int_equal(set.parts[0].ranks.n, 2);
    assert_false(procset_has(&set, "j", 1));
    procset_add(&set, "j", 0xfffffffe, 0xffffffff);
    procset_add(&set, "j", 5, 0xffffffff);
    procset_canonical(&set);
    assert_int_equal(set.parts[0].ranks.n, 2);
    procset_add(&set, "j", 0, 0xffffffff);
    procset_canonical(&set);
    assert_int_equal(set.parts[0].ranks.n, 1);
    assert_true(procset_size(&set) == 1ull << 32);
    procset_free(&set);
}

static void what_cannot_be_added(void **state)
{
    struct procset set = {0};
    char too_long[PROCSET_NAME_MAX + 2];
    (void)state;
    memset(too_long, 'n', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    assert_int_equal(procset_add(&set, "", 0, 0), -1);
    assert_int_equal(procset_add(&set, too_long, 0, 0), -1);
    assert_int_equal(procset_add(&set, "j", 2, 1), -1);
    procset_canonical(&set); /* callers do, also after an error */
    assert_int_equal(procset_size(&set), 0);
    assert_int_equal(set.nparts, 0);
    procset_free(&set);
}

static void a_walk_through_processes(void **state)
{
    struct procset set = {0};
    struct procset_at at = {0};
    (void)state;
    assert_false(procset_next(&set, &at));
    procset_add(&set, "b", 4, 5);
    procset_add(&set, "a", 0xffffffff, 0xffffffff);
    procset_canonical(&set);
    assert_true(procset_next(&set, &at));
    assert_string_equal(at.nspace, "a");
    assert_int_equal(at.rank, 0xffffffff);
    for (uint32_t rank = 4; rank <= 5; rank++) {
        assert_true(procset_next(&set, &at));
        assert_string_equal(at.nspace, "b");
        assert_int_equal(at.rank, rank);
    }
    assert_false(procset_next(&set, &at));
    procset_free(&set);
}

/* A set of one or two parts in raw bytes. */
struct raw {
    const char *name;
    uint32_t n;
    struct range r[2];
};

static bool is_read(const struct raw *raw, uint32_t nparts)
{
    struct wire_out out = {0};
    struct wire_in in;
    struct procset set = {0};
    wire_put_u32(&out, nparts);
    for (uint32_t i = 0; i < nparts; i++) {
        wire_put_str(&out, raw[i].name);
        wire_put_u32(&out, raw[i].n);
        for (uint32_t j = 0; j < raw[i].n; j++) {
            wire_put_u32(&out, raw[i].r[j].first);
            wire_put_u32(&out, raw[i].r[j].last);
        }
    }
    wire_put_raw(&out, "padding that a signature does not have", 38);
    wire_in_init(&in, out.data, out.len);
    procset_read(&set, &in);
    procset_free(&set);
    wire_out_free(&out);
    return !in.bad;
}

static void bytes_that_are_not_canonical(void **state)
{
    const struct raw good[] = {{"a", 2, {{0, 1}, {3, 3}}}, {"b", 1, {{0, 0xffffffff}}}};
    const struct raw order[] = {{"b", 1, {{0, 0}}}, {"a", 1, {{0, 0}}}};
    const struct raw twice[] = {{"a", 1, {{0, 0}}}, {"a", 1, {{1, 1}}}};
    const struct raw parts[] = {
        {"a", 0, {{0, 0}}},                  /* no ranks */
        {"", 1, {{0, 0}}},                   /* no name */
        {"a", 1, {{2, 1}}},                  /* backwards */
        {"a", 2, {{3, 3}, {0, 1}}},          /* not ascending */
        {"a", 2, {{0, 1}, {2, 3}}},          /* adjacent */
        {"a", 2, {{0, 3}, {2, 5}}},          /* overlapping */
        {"a", 2, {{0, 0xffffffff}, {0, 0}}}, /* after the last rank there is none */
        {"a", 2, {{0, 0xfffffffe}, {0xffffffff, 0xffffffff}}},
    };
    (void)state;
    assert_true(is_read(good, 2));
    assert_true(is_read(good, 0));
    assert_false(is_read(order, 2));
    assert_false(is_read(twice, 2));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_false(is_read(&parts[i], 1));
}

static void signatures(void **state)
{
    struct procset set = {0};
    struct wire_out out = {0};
    struct signature sig;
    char text[300];
    (void)state;
    procset_add(&set, "j", 0, 7);
    procset_canonical(&set);
    signature_write(&out, COLL_FENCE, "", &set);
    signature_describe(out.data, out.len, text, sizeof text);
    assert_string_equal(text, "fence of 8 processes");
    for (size_t len = 0; len < out.len; len++) {
        assert_int_equal(signature_read(&sig, out.data, len), -1);
        signature_free(&sig);
    }
    out.data[0] = COLL_KIND_END;
    assert_int_equal(signature_read(&sig, out.data, out.len), -1);
    signature_free(&sig);
    out.data[0] = COLL_DESTRUCT;
    signature_describe(out.data, out.len, text, sizeof text);
    assert_string_equal(text, "group \"\" destruct");
    out.data[0] = COLL_DISCONNECT;
    signature_describe(out.data, out.len, text, sizeof text);
    assert_string_equal(text, "disconnect of 8 processes");
    wire_out_free(&out);
    procset_free(&set);
    procset_add(&set, "j", 0, 7);
    procset_canonical(&set);
    signature_write(&out, COLL_CONNECT, "couple", &set);
    signature_describe(out.data, out.len, text, sizeof text);
    assert_string_equal(text, "connect \"couple\" of 8 processes");
    wire_out_free(&out);
    procset_free(&set);
    signature_write(&out, COLL_FENCE, "", &set); /* of nobody */
    assert_int_equal(signature_read(&sig, out.data, out.len), -1);
    signature_free(&sig);
    wire_out_free(&out);
}

static struct procset ranks(uint32_t first, uint32_t last)
{
    struct procset set = {0};
    assert_int_equal(procset_add(&set, "a", first, last), 0);
    return set;
}

/* The processes that go on know the lost ones that others have added, too: members are told of all.
 */
static void who_goes_on_without_the_lost(void **state)
{
    struct procset members = ranks(0, 3), added = ranks(6, 7), gone = {0}, lost = ranks(3, 6);
    struct procset left = ranks(0, 2), rest = ranks(7, 7), all = ranks(0, 9);
    (void)state;
    assert_true(retry_without(&members, &added, &gone, &lost));
    assert_true(procset_equal(&members, &left));
    assert_true(procset_equal(&added, &rest));
    assert_true(procset_equal(&gone, &lost));
    assert_false(retry_without(&members, &added, &gone, &lost)); /* the same ones */
    assert_true(procset_equal(&members, &left));
    assert_false(retry_without(&members, &added, &gone, &all));
    struct procset *const sets[] = {&members, &added, &gone, &lost, &left, &rest, &all};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        procset_free(sets[i]);
}

/* Over several names, and ranges with holes. */
static void places(void **state)
{
    struct procset set = {0};
    const struct procset_part *part;
    uint32_t rank;
    uint64_t n = 0;
    (void)state;
    procset_add(&set, "b", 0, UINT32_MAX - 1);
    procset_add(&set, "a", 7, 9);
    procset_add(&set, "a", 2, 3);
    procset_canonical(&set);
    for (struct procset_at at = {0}; n < 12 && procset_next(&set, &at); n++) {
        assert_int_equal(procset_place(&set, at.nspace, at.rank), n);
        assert_true(procset_at_place(&set, n, &part, &rank));
        assert_string_equal(part->nspace, at.nspace);
        assert_int_equal(rank, at.rank);
    }
    assert_int_equal(procset_place(&set, "b", UINT32_MAX - 1), 4 + (uint64_t)UINT32_MAX);
    assert_true(procset_at_place(&set, 4 + (uint64_t)UINT32_MAX, &part, &rank));
    assert_int_equal(rank, UINT32_MAX - 1);
    assert_false(procset_at_place(&set, 5 + (uint64_t)UINT32_MAX, &part, &rank));
    assert_true(procset_place(&set, "a", 4) == UINT64_MAX);
    assert_true(procset_place(&set, "c", 0) == UINT64_MAX);
    procset_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sets_equal_a_model),
        cmocka_unit_test(unions_and_differences_equal_a_model),
        cmocka_unit_test(bytes_round_trip),
        cmocka_unit_test(the_last_rank),
        cmocka_unit_test(what_cannot_be_added),
        cmocka_unit_test(bytes_that_are_not_canonical),
        cmocka_unit_test(a_walk_through_processes),
        cmocka_unit_test(signatures),
        cmocka_unit_test(who_goes_on_without_the_lost),
        cmocka_unit_test(places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
