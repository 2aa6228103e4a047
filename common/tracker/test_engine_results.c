/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what an operation gives: one status, one context id, all entries in one order.
 */
#include "common/tracker/test_kit.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loopback_conf network(uint32_t nnodes, uint32_t arity)
{
    return (struct loopback_conf){.nnodes = nnodes,
                                  .arity = arity,
                                  .seed = nnodes * 100ull + arity,
                                  .delay_max = 50,
                                  .reorder = true,
                                  .duplicate = 200};
}

/* Calls in an order that follows from the network's seed, over some time. */
struct late_call {
    struct kit *kit;
    struct kit_op *op;
    uint32_t slot;
    struct kit_ask ask;
};

static void make(struct loopback *net, void *arg)
{
    struct late_call *late = arg;
    (void)net;
    kit_call(late->kit, late->op, late->slot, late->ask);
    free(late);
}

static void call_all_within(struct kit *kit, struct kit_op *op, struct kit_ask ask, uint32_t ms)
{
    for (uint32_t slot = 0; slot < op->n; slot++) {
        struct late_call *late = malloc(sizeof *late);
        assert_non_null(late);
        *late = (struct late_call){kit, op, slot, ask};
        loopback_at(kit->net,
                    loopback_now(kit->net) + loopback_below(loopback_numbers(kit->net), ms), make,
                    late);
    }
}

static void results_of(uint32_t nnodes, uint32_t arity)
{
    struct loopback_conf conf = network(nnodes, arity);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "size", NULL, nnodes);
    call_all_within(kit, op, (struct kit_ask){.flags = ENGINE_WANT_CONTEXT_ID}, 3000);
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    assert_true(kit->calls->context_id != 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void every_size_and_arity(void **state)
{
    (void)state;
    kit_every_size(results_of);
}

static void subsets_of_the_servers(void **state)
{
    struct loopback_conf conf = network(20, 3);
    struct kit *kit = kit_new(&conf);
    (void)state;
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t nodes[20], n = 0;
        char id[16];
        for (uint32_t i = 0; i < 20; i++)
            if (loopback_below(loopback_numbers(kit->net), 3) == 0)
                nodes[n++] = i;
        if (n == 0)
            continue;
        snprintf(id, sizeof id, "subset%u", round);
        call_all_within(kit, kit_op(kit, COLL_CONSTRUCT, id, nodes, n), (struct kit_ask){0}, 500);
    }
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void context_ids_are_distinct_and_only_when_asked(void **state)
{
    struct loopback_conf conf = network(7, 2);
    struct kit *kit = kit_new(&conf);
    uint64_t ids[30];
    uint32_t n = 0;
    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        char id[16];
        snprintf(id, sizeof id, "ctx%u", i);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, id, NULL, 7);
        for (uint32_t slot = 0; slot < 7; slot++) /* that one asks is enough */
            kit_call(
                kit, op, slot,
                (struct kit_ask){.flags = i % 2 && slot == i % 7 ? ENGINE_WANT_CONTEXT_ID : 0});
    }
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->context_id != 0, call->op->number % 2);
        if (call->slot == 0 && call->context_id != 0)
            ids[n++] = call->context_id;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_true(ids[i] != ids[k]);
    kit_end(kit);
}

static void one_signature_many_times(void **state)
{
    struct loopback_conf conf = network(9, 2);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 9);
    (void)state;
    for (uint32_t round = 0; round < 200; round++) /* all of them queued at once */
        kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 200000);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void call_again(struct kit_call *call)
{
    if (call->instance < 49)
        kit_call(call->kit, call->op, call->slot, (struct kit_ask){.then = call_again});
}

static void calls_made_from_the_answer(void **state)
{
    struct loopback_conf conf = network(5, 2);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 5);
    const uint32_t alone[] = {3};
    (void)state;
    kit_call_all(kit, op, (struct kit_ask){.then = call_again});
    kit_call(kit, kit_op(kit, COLL_FENCE, "", alone, 1), 0, (struct kit_ask){.then = call_again});
    loopback_run(kit->net, 100000);
    kit_assert_all(kit, 0);
    assert_int_equal(op->made[0], 50);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void one_id_for_two_sets(void **state)
{
    const uint32_t even[] = {0, 2, 4, 6}, odd[] = {1, 3, 5, 7};
    struct loopback_conf conf = network(8, 2);
    struct kit *kit = kit_new(&conf);
    struct kit_ask ask = {.flags = ENGINE_WANT_CONTEXT_ID};
    struct kit_op *a = kit_op(kit, COLL_CONSTRUCT, "twin", even, 4);
    struct kit_op *b = kit_op(kit, COLL_CONSTRUCT, "twin", odd, 4);
    (void)state;
    call_all_within(kit, a, ask, 500);
    call_all_within(kit, b, ask, 500);
    loopback_run(kit->net, 5000);
    kit_assert_all(kit, 0);
    for (struct kit_call *x = kit->calls; x != NULL; x = x->next)
        for (struct kit_call *y = kit->calls; y != NULL; y = y->next)
            assert_int_equal(x->context_id == y->context_id, x->op == y->op);
    kit_end(kit);
}

static void fifty_at_once(void **state)
{
    struct loopback_conf conf = network(16, 3);
    struct kit *kit = kit_new(&conf);
    (void)state;
    for (uint32_t i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof id, "many%u", i);
        call_all_within(kit, kit_op(kit, i % 2 ? COLL_CONSTRUCT : COLL_DESTRUCT, id, NULL, 16),
                        (struct kit_ask){.flags = ENGINE_WANT_CONTEXT_ID}, 2000);
    }
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

/* A call with much data. */
struct large_call {
    struct engine_call call;
    struct shared_bytes *data; /* of all */
    bool copied;               /* from what had come */
    unsigned char own[64 << 10];
};

static void on_data(struct engine_call *call, const struct engine_result *result)
{
    struct large_call *large = (struct large_call *)call;
    large->data = engine_result_data(result);
    assert_int_equal(result->nentries, 5);
    large->copied = large->data == NULL || large->data->data != result->entries[0].data;
}

/* Each server's caller gets the data as they came, or as the root sends them, and may keep them
 * longer than the engine does. */
static void large_data_are_not_copied_for_the_caller(void **state)
{
    struct loopback_conf conf = network(5, 2);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 5);
    struct large_call *calls = calloc(5, sizeof *calls);
    (void)state;
    assert_non_null(calls);
    for (uint32_t i = 0; i < 5; i++) {
        memset(calls[i].own, (int)i + 1, sizeof calls[i].own);
        calls[i].call = (struct engine_call){.sig = op->sig,
                                             .siglen = op->siglen,
                                             .data = calls[i].own,
                                             .len = sizeof calls[i].own,
                                             .done = on_data};
        engine_call(loopback_engine(kit->net, i), &calls[i].call);
    }
    loopback_run(kit->net, 10000);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
    for (uint32_t i = 0; i < 5; i++) {
        assert_non_null(calls[i].data);
        assert_false(calls[i].copied);
        assert_int_equal(calls[i].data->len, 5 * sizeof calls[i].own);
        for (uint32_t from = 0; from < 5; from++)
            assert_memory_equal(calls[i].data->data + from * sizeof calls[i].own, calls[from].own,
                                sizeof calls[i].own);
        shared_bytes_drop(calls[i].data);
    }
    free(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_and_arity),
        cmocka_unit_test(subsets_of_the_servers),
        cmocka_unit_test(context_ids_are_distinct_and_only_when_asked),
        cmocka_unit_test(one_signature_many_times),
        cmocka_unit_test(calls_made_from_the_answer),
        cmocka_unit_test(one_id_for_two_sets),
        cmocka_unit_test(fifty_at_once),
        cmocka_unit_test(large_data_are_not_copied_for_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
