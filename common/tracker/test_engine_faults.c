/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of losses: servers that die, participants that end, libraries that differ.
 */
#include "common/tracker/test_kit.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

enum { N = 7 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

/* Asserts that every call on a server that lives was answered once, with status. */
static void assert_survivors(const struct kit *kit, int32_t status)
{
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        if (!loopback_dead(kit->net, call->op->nodes[call->slot]))
            assert_int_equal(call->status, status);
    }
    assert_string_equal(kit->fault, "");
}

static void call_some(struct kit *kit, struct kit_op *op, uint32_t but, uint32_t first,
                      uint32_t step)
{
    for (uint32_t slot = first; slot < op->n; slot += step)
        if (slot != but && op->made[slot] == 0)
            kit_call(kit, op, slot, (struct kit_ask){0});
}

/* Root, interior and leaf: each server dies once before, amid and after the others' calls. */
static void a_server_dies_without_its_call(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < N; victim++)
        for (int when = 0; when < 3; when++) {
            struct kit *kit = kit_new(&seven);
            struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "loss", NULL, N);
            if (when > 0)
                call_some(kit, op, victim, 0, when == 1 ? 2 : 1);
            loopback_run(kit->net, 1000);
            loopback_kill(kit->net, victim, 0, 300);
            loopback_run(kit->net, when == 2 ? 1000 : 100);
            call_some(kit, op, victim, 0, 1);
            loopback_run(kit->net, 10000);
            assert_survivors(kit, LOOPBACK_LOST);
            loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
            assert_int_equal(kit_trackers(kit), 0);
            kit_end(kit);
        }
}

/* A server that dies after it has contributed leaves those below it without a way up. */
static void a_server_dies_after_its_call(void **state)
{
    struct tree tree;
    (void)state;
    for (uint32_t place = 1; place < 3; place++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
        tree = kit_tree(op, 2);
        uint32_t victim = tree_child(&tree, tree.root, place - 1);
        kit_call(kit, op, victim, (struct kit_ask){0});
        loopback_run(kit->net, 1000); /* its own contribution is at the root by now */
        loopback_kill(kit->net, victim, 0, 300);
        call_some(kit, op, victim, 0, 1);
        loopback_run(kit->net, 10000);
        assert_survivors(kit, LOOPBACK_LOST);
        kit_end(kit);
    }
}

static void after_a_loss_the_others_go_on(void **state)
{
    const uint32_t others[] = {0, 1, 2, 4, 5, 6};
    struct kit *kit = kit_new(&seven);
    struct kit_op *all = kit_op(kit, COLL_FENCE, "", NULL, N);
    struct kit_op *rest = kit_op(kit, COLL_FENCE, "", others, N - 1);
    (void)state;
    loopback_kill(kit->net, 3, 0, 0);
    loopback_run(kit->net, 10);
    call_some(kit, all, 3, 0, 1);
    loopback_run(kit->net, 5000);
    assert_survivors(kit, LOOPBACK_LOST);
    kit_call_all(kit, rest, (struct kit_ask){0});
    loopback_run(kit->net, 5000);
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next)
        assert_int_equal(call->status, call->op == rest ? 0 : LOOPBACK_LOST);
    kit_end(kit);
}

/* Leaves too, which hear of the operation only when they are asked.
 * @param before whether the loss is known before the first contribution comes */
static void lose_participants(uint32_t where, bool before)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "end", NULL, N);
    if (before)
        loopback_local_status(kit->net, where, -88);
    call_some(kit, op, where, 0, 1);
    loopback_run(kit->net, 2000);
    if (!before) {
        assert_int_equal(kit->calls->answers, 0);
        loopback_local_status(kit->net, where, -88);
        loopback_run(kit->net, 12000); /* two questions at most */
    }
    kit_assert_all(kit, -88);
    kit_end(kit);
}

static void a_participant_ends_without_its_call(void **state)
{
    (void)state;
    for (uint32_t where = 0; where < N; where++) {
        lose_participants(where, true);
        lose_participants(where, false);
    }
}

/* However many operations wait for it. */
static void a_participant_of_many_ends(void **state)
{
    enum { MANY = 40 };
    struct kit *kit = kit_new(&seven);
    (void)state;
    for (int i = 0; i < MANY; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        call_some(kit, kit_op(kit, COLL_CONSTRUCT, id, NULL, N), N - 1, 0, 1);
    }
    loopback_run(kit->net, 2000); /* all have been asked for */
    loopback_local_status(kit->net, N - 1, -88);
    loopback_run(kit->net, 1000);
    kit_assert_all(kit, -88);
    kit_end(kit);
}

static void a_contribution_before_the_end_stands(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    (void)state;
    call_some(kit, op, TREE_NONE, 0, 2);
    loopback_run(kit->net, 2000);
    for (uint32_t slot = 0; slot < N; slot += 2)
        loopback_local_status(kit->net, slot, -88);
    call_some(kit, op, TREE_NONE, 1, 2);
    loopback_run(kit->net, 2000);
    kit_assert_all(kit, 0);
    kit_end(kit);
}

static void a_call_with_a_failure_is_everybodys(void **state)
{
    (void)state;
    for (uint32_t slot = 0; slot < N; slot++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "refused", NULL, N);
        for (uint32_t i = 0; i < N; i++)
            kit_call(kit, op, i, (struct kit_ask){.status = i == slot ? -99 : 0});
        loopback_run(kit->net, 5000);
        kit_assert_all(kit, -99);
        loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
        assert_int_equal(kit_trackers(kit), 0);
        kit_end(kit);
    }
}

/* Also in a later try: what such a server contributes counts nowhere, so no server waits for it. */
static void libraries_that_differ(void **state)
{
    struct procset gone = kit_servers(1u << N);
    (void)state;
    for (uint32_t i = 0; i < 2 * N; i++) {
        uint32_t node = i / 2;
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "mixed", NULL, N);
        loopback_library(kit->net, node, 5 << 16 | 1 << 8 | 7);
        kit_call_all(kit, op, (struct kit_ask){.gone = i % 2 == 1 ? &gone : NULL});
        loopback_run(kit->net, 5000);
        kit_assert_all(kit, LOOPBACK_LIBRARY);
        char text[64];
        snprintf(text, sizeof text, "libpmix is 5.1.7 on node c%02u and 4.2.2 on node c0", node);
        bool child = strstr(kit->log, text) != NULL; /* whose parent noticed, else it is a parent */
        snprintf(text, sizeof text, "and 5.1.7 on node c%02u;", node);
        assert_true(child || strstr(kit->log, text) != NULL);
        kit_end(kit);
    }
    procset_free(&gone);
}

/* Trees of two shapes: each server believes in another parent, or a parent in another child. */
static void arities_that_differ(void **state)
{
    static const uint32_t arities[] = {3, 4, 6, 16};
    (void)state;
    for (uint32_t node = 0; node < N; node++)
        for (int k = 0; k < 4; k++)
            for (int pair = 0; pair < 2; pair++) {
                struct kit *kit = kit_new(&seven);
                struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
                char text[64];
                loopback_arity(kit->net, node, arities[k]);
                if (pair)
                    loopback_arity(kit->net, (node + 3) % N, arities[k]);
                for (uint32_t call = 0; call < 2; call++) {
                    for (uint32_t i = call % 2; i < N; i += 2)
                        kit_call(kit, op, i, (struct kit_ask){0});
                    for (uint32_t i = (call + 1) % 2; i < N; i += 2)
                        kit_call(kit, op, i, (struct kit_ask){0});
                    loopback_run(kit->net, 12000);
                    kit_assert_all(kit, LOOPBACK_LIBRARY);
                }
                snprintf(text, sizeof text, "tree_arity is %u on node c", arities[k]);
                bool child = strstr(kit->log, text) != NULL;
                snprintf(text, sizeof text, "and %u on node c", arities[k]);
                assert_true(child || strstr(kit->log, text) != NULL);
                assert_null(strstr(kit->log, "dropped"));
                loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
                assert_int_equal(kit_trackers(kit), 0);
                kit_end(kit);
            }
}

/* A server was told another parent than the others were told for it. */
static void shapes_that_differ(void **state)
{
    static const uint32_t chain[] = {TREE_NONE, 0, 1, 2, 3, 4, 5};
    struct loopback_conf conf = seven;
    (void)state;
    conf.parents = chain;
    for (uint32_t node = 2; node < N; node++) {
        struct kit *kit = kit_new(&conf);
        struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
        uint32_t other[N];
        memcpy(other, chain, sizeof other);
        other[node] = 0;
        loopback_shape(kit->net, node, other);
        kit_call_all(kit, op, (struct kit_ask){0});
        loopback_run(kit->net, 12000);
        kit_assert_all(kit, LOOPBACK_LIBRARY);
        assert_non_null(strstr(kit->log, "different trees"));
        kit_end(kit);
    }
}

/* Servers that do not take part may have any settings. */
static void an_arity_that_does_not_matter(void **state)
{
    static const uint32_t some[] = {0, 2, 3, 5, 6};
    struct kit *kit = kit_new(&seven);
    (void)state;
    loopback_arity(kit->net, 1, 16);
    loopback_arity(kit->net, 4, 3);
    kit_call_all(kit, kit_op(kit, COLL_CONSTRUCT, "some", some, 5), (struct kit_ask){0});
    loopback_run(kit->net, 2000);
    kit_assert_all(kit, 0);
    assert_string_equal(kit->log, "");
    kit_end(kit);
}

/* An engine that closes tells the others, who must still be there. */
static void all_end_while_calls_wait(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < N; node++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "end", NULL, N);
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != node)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 100);
        loopback_free(kit->net);
        for (struct kit_call *call = kit->calls; call != NULL; call = call->next)
            assert_int_equal(call->answers, 1);
        kit->net = loopback_new(&seven);
        kit_end(kit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_dies_without_its_call),
        cmocka_unit_test(a_server_dies_after_its_call),
        cmocka_unit_test(after_a_loss_the_others_go_on),
        cmocka_unit_test(a_participant_ends_without_its_call),
        cmocka_unit_test(a_participant_of_many_ends),
        cmocka_unit_test(a_contribution_before_the_end_stands),
        cmocka_unit_test(a_call_with_a_failure_is_everybodys),
        cmocka_unit_test(libraries_that_differ),
        cmocka_unit_test(arities_that_differ),
        cmocka_unit_test(shapes_that_differ),
        cmocka_unit_test(an_arity_that_does_not_matter),
        cmocka_unit_test(all_end_while_calls_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
