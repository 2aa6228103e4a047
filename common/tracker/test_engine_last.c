/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of who was last in an operation, as its root counts it, and of the counts of waits.
 */
#include "common/tracker/test_kit.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 31, DELAY = 3, DEPTH = 4, SLACK_MS = (DELAY + 1) * DEPTH };

static const struct loopback_conf conf = {
    .nnodes = N, .arity = 2, .seed = 11, .delay_max = DELAY, .reorder = true};

/* All call, but these, which call so many ms later. */
static void fence(struct kit *kit, struct kit_op *op, uint32_t first, uint32_t first_ms,
                  uint32_t second, uint32_t second_ms)
{
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != first && slot != second)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, first_ms);
    kit_call(kit, op, first, (struct kit_ask){0});
    if (second != first) {
        loopback_run(kit->net, second_ms - first_ms);
        kit_call(kit, op, second, (struct kit_ask){0});
    }
    loopback_run(kit->net, 200);
    kit_assert_all(kit, 0);
}

static const struct tally *tally_of_root(struct kit *kit, const struct kit_op *op)
{
    struct tree tree = kit_tree(op, 2);
    return engine_tally(loopback_engine(kit->net, op->nodes[tree.root]));
}

static void assert_late(const struct tally_late *late, uint32_t node, uint64_t count, uint64_t ms)
{
    assert_int_equal(late->node, node);
    assert_int_equal(late->kind, COLL_FENCE);
    assert_int_equal(late->times.count, count);
    assert_in_range(late->times.total_us / count, (ms - SLACK_MS) * 1000, (ms + SLACK_MS) * 1000);
    assert_in_range(late->times.max_us, (ms - SLACK_MS) * 1000, (ms + SLACK_MS) * 1000);
}

/* Wherever in the tree it is: a leaf, inside, the root. Also when it is late by more than half a
 * second, and contributions come in parts before. */
static void a_late_server_is_named(void **state)
{
    (void)state;
    for (uint32_t late = 0; late < N; late++)
        for (uint32_t ms = 100; ms <= 1700; ms += 1600) {
            struct kit *kit = kit_new(&conf);
            struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
            fence(kit, op, late, ms, late, ms);
            const struct tally *tally = tally_of_root(kit, op);
            assert_int_equal(tally->decided[COLL_FENCE], 1);
            assert_int_equal(tally->nservers, 1);
            assert_late(&tally->servers[0], late, 1, ms);
            kit_end(kit);
        }
}

/* In one operation two are late: the last one is late by what it came after the other. */
static void the_last_one_counts_against_the_last_but_one(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < N; first++)
        for (uint32_t last = 0; last < N; last++) {
            if (first == last)
                continue;
            struct kit *kit = kit_new(&conf);
            struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
            fence(kit, op, first, 100, last, 160);
            const struct tally *tally = tally_of_root(kit, op);
            assert_int_equal(tally->nservers, 1);
            assert_late(&tally->servers[0], last, 1, 60);
            kit_end(kit);
        }
}

/* Two are late in turn: both are named, each by its own. */
static void both_of_two_in_turn_are_named(void **state)
{
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    (void)state;
    for (int i = 0; i < 10; i++)
        fence(kit, op, i % 2 ? 7 : 23, i % 2 ? 100 : 200, i % 2 ? 7 : 23, 0);
    const struct tally *tally = tally_of_root(kit, op);
    assert_int_equal(tally->decided[COLL_FENCE], 10);
    assert_int_equal(tally->nservers, 2);
    assert_late(&tally->servers[0], 23, 5, 200);
    assert_late(&tally->servers[1], 7, 5, 100);
    kit_end(kit);
}

static void waits_are_those_of_the_calls(void **state)
{
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    (void)state;
    fence(kit, op, 5, 100, 5, 0);
    for (uint32_t node = 0; node < N; node++) {
        const struct tally *tally = engine_tally(loopback_engine(kit->net, node));
        const struct times *waits = &tally->waits[COLL_FENCE];
        uint64_t least = node == 5 ? 0 : 100;
        assert_int_equal(waits->count, 1);
        assert_in_range(waits->max_us, least * 1000, (least + 2 * SLACK_MS) * 1000);
        assert_int_equal(tally->noperations, 1);
        assert_string_equal(tally->operations[0].name, "fence of 31 processes");
        assert_int_equal(tally->operations[0].waits.count, 1);
    }
    kit_end(kit);
}

/* A server by itself is not late, and what failed names no one. */
static void one_server_is_not_late(void **state)
{
    struct kit *kit = kit_new(&conf);
    const uint32_t alone = 3;
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", &alone, 1);
    (void)state;
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_assert_all(kit, 0);
    const struct tally *tally = engine_tally(loopback_engine(kit->net, alone));
    assert_int_equal(tally->decided[COLL_FENCE], 1);
    assert_int_equal(tally->nservers, 0);
    op = kit_op(kit, COLL_FENCE, "", NULL, N);
    kit_call_all(kit, op, (struct kit_ask){.status = -4711});
    loopback_run(kit->net, 1000);
    tally = tally_of_root(kit, op);
    assert_int_equal(tally->nservers, 0);
    assert_true(tally->waits[COLL_FENCE].count >= 1);
    kit_end(kit);
}

/* However many others come by, the one that is late most is there, and so is the busiest. */
static void lists_keep_what_counts(void **state)
{
    struct tally tally = {0};
    struct procset members = {0};
    (void)state;
    assert_int_equal(procset_add(&members, "ns", 0, 7), 0);
    for (uint32_t i = 0; i < 5000; i++) {
        struct wire_out sig = {0};
        char id[16];
        snprintf(id, sizeof id, "g%u", i % 4 == 0 ? 4711 : i);
        signature_write(&sig, COLL_CONSTRUCT, id, &members);
        tally_wait(&tally, COLL_CONSTRUCT, sig.data, sig.len, 10);
        tally_last(&tally, COLL_FENCE, 1000 + i, 100);
        if (i % 2 == 0)
            tally_last(&tally, COLL_FENCE, 42, 1000);
        wire_out_free(&sig);
    }
    uint64_t times = 0, uses = 0;
    for (uint32_t i = 0; i < tally.nservers; i++)
        if (tally.servers[i].node == 42)
            times = tally.servers[i].times.count;
    for (uint32_t i = 0; i < tally.noperations; i++)
        if (strcmp(tally.operations[i].name, "group \"g4711\" construct") == 0)
            uses = tally.operations[i].waits.count;
    assert_int_equal(tally.nservers, TALLY_LATE);
    assert_int_equal(tally.noperations, TALLY_OPERATIONS);
    assert_int_equal(times, 2500);
    assert_in_range(uses, 1200, 1251);
    procset_free(&members);
}

static void quantiles(void **state)
{
    struct times times = {0}, more = {0};
    (void)state;
    assert_int_equal(times_quantile(&times, 0.5), 0);
    for (int i = 0; i < 99; i++)
        times_add(&times, 50000);
    times_add(&more, 3000000);
    times_merge(&times, &more);
    assert_int_equal(times.count, 100);
    assert_int_equal(times.max_us, 3000000);
    assert_int_equal(times_quantile(&times, 0.5), 50000);
    assert_int_equal(times_quantile(&times, 0.99), 50000);
    assert_int_equal(times_quantile(&times, 1), 3000000);
    times_add(&times, 0);
    times_add(&times, UINT64_MAX / 2);
    assert_int_equal(times.n[0], 1);
    assert_int_equal(times.n[TIMES_BUCKETS - 1], 1);
}

/* What servers hand on says the same at the other end, and half of it says nothing. */
static void counts_are_handed_on(void **state)
{
    struct tally tally = {0}, sum = {0};
    struct wire_out out = {0};
    struct wire_in in;
    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        tally_wait(&tally, COLL_FENCE, NULL, 0, 1000 * i);
        tally_last(&tally, COLL_DESTRUCT, i % 5, 1000);
    }
    tally_last(&tally, COLL_FENCE, 9, 1000); /* a server of another step */
    tally.decided[COLL_FENCE] = 77;
    tally_write(&tally, 5, &out);
    for (size_t len = 0; len <= out.len + 1; len++) {
        struct tally got = {0};
        unsigned char *exact = calloc(1, len + 1);
        memcpy(exact, out.data, len < out.len ? len : out.len);
        wire_in_init(&in, exact, len);
        assert_int_equal(tally_read(&got, 5, &in), len == out.len);
        if (len == out.len) {
            tally_merge(&sum, &got);
            tally_merge(&sum, &got);
        }
        free(exact);
    }
    assert_int_equal(sum.decided[COLL_FENCE], 154);
    assert_int_equal(sum.waits[COLL_FENCE].count, 200);
    assert_int_equal(sum.waits[COLL_FENCE].total_us, 2 * tally.waits[COLL_FENCE].total_us);
    assert_int_equal(sum.waits[COLL_FENCE].max_us, 99000);
    assert_int_equal(sum.nservers, 5);
    assert_int_equal(sum.servers[0].times.count, 40);
    wire_out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_server_is_named),
        cmocka_unit_test(the_last_one_counts_against_the_last_but_one),
        cmocka_unit_test(both_of_two_in_turn_are_named),
        cmocka_unit_test(waits_are_those_of_the_calls),
        cmocka_unit_test(one_server_is_not_late),
        cmocka_unit_test(lists_keep_what_counts),
        cmocka_unit_test(counts_are_handed_on),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
