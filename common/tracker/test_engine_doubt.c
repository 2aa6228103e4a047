/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of a server that is lost between having a result and passing it on: all that are left get
 * one answer.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/tracker/test_silence.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_left(const struct kit *kit, int32_t status)
{
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
        if (call->op->nodes[call->slot] != silence.by) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, status);
        }
}

/* The root tells some of its children, or none, and is lost. */
static void a_root_that_tells_some(void **state)
{
    static const enum coll_kind kinds[] = {COLL_CONSTRUCT, COLL_DESTRUCT};
    (void)state;
    for (int which = 0; which < 8; which++) {
        enum coll_kind kind = kinds[which / 4];
        struct kit *kit = silent_kit();
        struct kit_op *op = kit_op(kit, kind, "some", NULL, N);
        struct tree tree = kit_tree(op, 2);
        silence.by = tree.root;
        for (uint32_t i = 0; i < 2; i++)
            silence.release[tree.root][tree_child(&tree, tree.root, i)] = which & 1 << i;
        kit_call_all(kit, op, (struct kit_ask){.flags = ENGINE_WANT_CONTEXT_ID});
        end_silence(kit->net);
        assert_left(kit, (which & 3) == 3 ? LOOPBACK_LOST : 0);
        if ((which & 3) != 3)
            kit_check_agreement(kit);
        kit_end(kit);
    }
}

/* A server between takes the success along; the root still has it. */
static void a_server_between(void **state)
{
    (void)state;
    struct kit_op *op;
    struct kit *kit = silent_between(&op);
    kit_call_all(kit, op, (struct kit_ask){.flags = ENGINE_WANT_CONTEXT_ID});
    end_silence(kit->net);
    kit_assert_all(kit, 0);
    loopback_run(kit->net, LONG_MS);
    for (uint32_t i = 0; i < N; i++)
        if (i != silence.by)
            assert_true(loopback_is_empty(kit->net, i));
    kit_end(kit);
}

/* Both words of a root that is lost are late: on the operation that has succeeded, and on the next
 * one, which has failed. The server below asks the other one for the first, so it must not take the
 * second for its answer. */
static void late_words_of_a_lost_root(void **state)
{
    static const uint32_t parents[] = {TREE_NONE, 0, 0};
    static const uint8_t apart[] = {0, 0, 1};
    struct loopback_conf conf = {
        .nnodes = 3, .arity = 2, .seed = 7, .delay_min = 10, .delay_max = 10, .parents = parents};
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "late", NULL, 3);
    (void)state;
    const struct kit_call *below = kit_call(kit, op, 2, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    loopback_partition(kit->net, apart, loopback_now(kit->net) + 1000);
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_call(kit, op, 1, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    kit_call(kit, op, 0, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    kit_call(kit, op, 1, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    loopback_kill(kit->net, 0, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(kit->net, 2), 0);
    loopback_run(kit->net, 2000);
    assert_int_equal(below->answers, 1);
    assert_int_equal(below->status, 0);
    const struct kit_call *next = kit_call(kit, op, 2, (struct kit_ask){0});
    loopback_run(kit->net, 2000);
    assert_int_equal(next->answers, 1);
    assert_int_equal(next->status, LOOPBACK_LOST); /* nobody waits for it, and the root is lost */
    kit_end(kit);
}

/* The success before is not known below the lost one either when the next operation fails. */
static void a_failure_does_not_overtake(void **state)
{
    (void)state;
    struct kit_op *op;
    struct kit *kit = silent_between(&op);
    struct tree tree = kit_tree(op, 2);
    kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    struct kit_call *first = kit->calls;
    uint32_t other = tree_child(&tree, tree.root, 1);
    kit_call(kit, op, tree.root, (struct kit_ask){0});
    kit_call(kit, op, other, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    end_silence(kit->net);
    for (const struct kit_call *call = kit->calls; call != first; call = call->next)
        assert_int_equal(call->status, LOOPBACK_TIMEOUT);
    for (const struct kit_call *call = first; call != NULL; call = call->next)
        assert_int_equal(call->status, 0);
    kit_end(kit);
}

/* A server between keeps back several failures: the first one is the answer to the call, whether it
 * is asked for or goes round the lost one together with a later one. */
static void failures_stay_in_order(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct kit_op *op;
        struct kit *kit = silent_between(&op);
        struct tree tree = kit_tree(op, 2);
        uint32_t between = silence.by, other = tree_child(&tree, tree.root, 1);
        uint32_t below = tree_child(&tree, between, 0);
        struct kit_call *first = kit_call(kit, op, below, (struct kit_ask){0});
        loopback_run(kit->net, 300);
        for (int32_t instance = 0; instance < 2; instance++) {
            kit_call(kit, op, tree.root, (struct kit_ask){0});
            kit_call(kit, op, other, (struct kit_ask){.status = LOOPBACK_TIMEOUT - instance});
            loopback_run(kit->net, 300);
        }
        assert_int_equal(first->answers, 0);
        loopback_kill(kit->net, between, round ? LONG_MS : 0, round ? LONG_MS : 0);
        if (round) {
            engine_lost(loopback_engine(kit->net, tree.root), between);
            kit_call(kit, op, tree.root, (struct kit_ask){0});
        }
        loopback_run(kit->net, 300);
        assert_int_equal(first->answers, 1);
        assert_int_equal(first->status, LOOPBACK_TIMEOUT);
        kit_end(kit);
    }
}

/* The decider is asked about an operation that it has failed already: it says so, and fails nothing
 * else. */
static void what_has_failed_fails_once(void **state)
{
    (void)state;
    struct kit_op *op;
    struct kit *kit = silent_between(&op);
    struct tree tree = kit_tree(op, 2);
    uint32_t below = tree_child(&tree, silence.by, 0);
    const struct kit_call *asks = kit_call(kit, op, below, (struct kit_ask){0});
    kit_call(kit, op, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    loopback_run(kit->net, 300);
    loopback_kill(kit->net, silence.by, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(kit->net, below), silence.by);
    loopback_run(kit->net, 300);
    assert_int_equal(asks->status, LOOPBACK_TIMEOUT);
    const struct kit_call *next = kit_call(kit, op, tree.root, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    assert_int_equal(next->answers, 0);
    kit_call(kit, op, below, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    assert_int_equal(next->status, LOOPBACK_LOST);
    kit_end(kit);
}

static struct party *leads(struct party_room *room, uint32_t rank)
{
    struct procset leaders = party_set("a0 a1 a2"), added = party_set("a5 a6");
    struct party *party = party_collective(room, "g", (struct party_proc){'a', rank}, &leaders,
                                           (struct party_ask){.added = &added});
    procset_free(&leaders);
    procset_free(&added);
    return party;
}

/* The same with added members, whose servers are in no tree: whoever is told, all are. */
static void a_root_that_tells_some_members(void **state)
{
    struct procset leaders = party_set("a0 a1 a2");
    struct wire_out sig = {0};
    (void)state;
    signature_write(&sig, COLL_CONSTRUCT, "g", &leaders);
    uint32_t root = (uint32_t)(signature_hash(sig.data, sig.len) % 3);
    for (int which = 0; which < 16; which++) {
        struct loopback_conf conf = silent_net();
        silence.by = root;
        struct party_room room = {.kit = kit_new(&conf)};
        for (uint32_t i = 0, bit = 0; i < N; i++)
            if (i < 3 ? i != root : i > 4)
                (i < 3 ? silence.release : silence.outcome)[root][i] = which & 1 << bit++;
        for (uint32_t rank = 0; rank < 3; rank++)
            leads(&room, rank);
        for (uint32_t rank = 5; rank < N; rank++)
            party_join(&room, "g", (struct party_proc){'a', rank}, (struct party_ask){0});
        end_silence(room.kit->net);
        for (const struct party *party = room.all; party != NULL; party = party->next)
            if (party->proc.rank != root) {
                assert_int_equal(party->answers, 1);
                assert_int_equal(party->status, (which & 3) == 3 ? LOOPBACK_LOST : 0);
            }
        party_end(&room);
    }
    wire_out_free(&sig);
    procset_free(&leaders);
}

/* The only leader's server tells one of two added members. The other one knows no server that it
 * could ask (docs/limits.md). */
static void a_member_with_nobody_to_ask(void **state)
{
    struct loopback_conf conf = silent_net();
    struct party_room room = {.kit = kit_new(&conf)};
    struct procset leaders = party_set("a0"), added = party_set("a5 a6");
    (void)state;
    silence.by = 0;
    silence.outcome[0][6] = true;
    party_collective(&room, "g", (struct party_proc){'a', 0}, &leaders,
                     (struct party_ask){.added = &added});
    struct party *told = party_join(&room, "g", (struct party_proc){'a', 5}, (struct party_ask){0});
    struct party *other =
        party_join(&room, "g", (struct party_proc){'a', 6}, (struct party_ask){0});
    end_silence(room.kit->net);
    party_assert(told, 0);
    party_assert(other, LOOPBACK_LOST);
    party_end(&room);
    procset_free(&added);
    procset_free(&leaders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_tells_some),
        cmocka_unit_test(a_server_between),
        cmocka_unit_test(late_words_of_a_lost_root),
        cmocka_unit_test(a_failure_does_not_overtake),
        cmocka_unit_test(failures_stay_in_order),
        cmocka_unit_test(what_has_failed_fails_once),
        cmocka_unit_test(a_root_that_tells_some_members),
        cmocka_unit_test(a_member_with_nobody_to_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
