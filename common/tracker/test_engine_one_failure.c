/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of failures of several tries of one operation: each server has one of them, the same one.
 */
#include "common/tracker/test_silence.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>

enum { LEFT = N - 2 };

/* Server 1 knows of two losses, and its try fails. The others know of one loss, and server 0 fails
 * their try. The try of server 1 is not decided before all have made it. So both failures end as
 * one, and no failure is left for the next operation. */
static void two_tries_that_fail_at_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct procset gone6 = kit_servers(0x40), gone = kit_servers(0x60);
        struct kit *kit = silent_kit();
        const struct kit_call *calls[LEFT], *first[LEFT];
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        loopback_local_status(kit->net, 5, -88);
        calls[1] = kit_call(kit, without_both, 1, (struct kit_ask){.gone = &gone, .status = -78});
        loopback_run(kit->net, 1000);
        assert_int_equal(calls[1]->answers, 0);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != 1)
                first[slot] =
                    kit_call(kit, without6, slot,
                             (struct kit_ask){.gone = &gone6, .status = slot == 0 ? -77 : 0});
        loopback_run(kit->net, 10000);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != 1) {
                assert_int_equal(first[slot]->answers, 1);
                calls[slot] = kit_call(kit, without_both, slot,
                                       (struct kit_ask){.gone = &gone,
                                                        .op = first[slot]->call.op,
                                                        .status = slot == 0 ? -77 : 0});
            }
        loopback_run(kit->net, 2000);
        for (uint32_t slot = 0; slot < LEFT; slot++) {
            assert_int_equal(calls[slot]->answers, 1);
            assert_int_equal(calls[slot]->status, calls[1]->status);
        }
        struct kit_op *next = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        kit_call_all(kit, next, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 1000);
        for (const struct kit_call *call = kit->calls; call->op == next; call = call->next) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
        }
        kit_end(kit);
        procset_free(&gone6);
        procset_free(&gone);
    }
}

/* A server hears from another one that the first try has failed for good, while its call and that
 * of a server below wait in a later try. The server below hears it from no other server. */
static void what_fails_is_told_below(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct procset gone = kit_servers(0x60);
        struct kit *kit = silent_kit();
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *all = kit_op(kit, COLL_CONSTRUCT, id, NULL, N);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        struct tree tree = kit_tree(all, 2), later = kit_tree(without_both, 2);
        uint32_t root = later.root, below = tree_child(&later, root, 1);
        if (tree.root != root && tree.root != below && tree_parent(&tree, below) != root) {
            const uint32_t slots[] = {root, below};
            const struct kit_call *calls[2];
            for (int k = 0; k < 2; k++)
                calls[k] = kit_call(kit, without_both, slots[k], (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 300);
            for (uint32_t from = 0; from < N; from++)
                silence.release[from][below] = from != root;
            kit_call(kit, all, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
            loopback_run(kit->net, 30000);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(calls[k]->answers, 1);
                assert_int_equal(calls[k]->status, LOOPBACK_TIMEOUT);
            }
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 20);
}

/* The root has failed the first try for good, and is lost with its word. A server has given that
 * try up for the loss, and goes on. Then a server below contributes to the first try, which is
 * given up once more. When the word comes, it answers the call that waits, and no later call. */
static void a_try_that_is_given_up_twice(void **state)
{
    struct procset gone = {0};
    struct kit *kit = silent_kit();
    struct kit_op *all = kit_op(kit, COLL_CONSTRUCT, "twice", NULL, N);
    struct tree tree = kit_tree(all, 2);
    uint32_t root = tree.root, here = tree_child(&tree, root, 0), nodes[N], n = 0;
    struct engine *engine = loopback_engine(kit->net, here);
    (void)state;
    silence.held_to = here;
    silence.release[root][here] = true;
    kit_call(kit, all, root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    loopback_run(kit->net, 300);
    loopback_kill(kit->net, root, LONG_MS, LONG_MS);
    struct kit_call *call = kit_call(kit, all, here, (struct kit_ask){0});
    engine_lost(engine, root);
    assert_int_equal(call->status, LOOPBACK_LOST);
    for (uint32_t node = 0; node < N; node++)
        if (node != root)
            nodes[n++] = node;
    gone = kit_servers(1u << root);
    struct kit_op *without = kit_op(kit, COLL_CONSTRUCT, "twice", nodes, n);
    const struct kit_call *next = kit_call(kit, without, here < root ? here : here - 1,
                                           (struct kit_ask){.gone = &gone, .op = call->call.op});
    kit_call(kit, all, tree_child(&tree, here, 0), (struct kit_ask){0});
    loopback_run(kit->net, 300);
    assert_int_equal(next->answers, 0);
    engine_take(engine, tree_child(&tree, here, 0), FRAME_RELEASE, silence.held, silence.len);
    assert_int_equal(next->answers, 1);
    assert_int_equal(next->status, LOOPBACK_TIMEOUT);
    call = kit_call(kit, all, here, (struct kit_ask){0});
    assert_int_equal(call->status, LOOPBACK_LOST);
    kit_end(kit);
    procset_free(&gone);
}

/* A server is asked about a later try, and says that its participant has ended. The server above
 * knows that the first try has failed for good, and drops that. When the server hears of this
 * failure as well, it says the loss again. */
static void a_loss_that_was_dropped(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct procset gone6 = kit_servers(0x40);
        struct kit *kit = silent_kit();
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *all = kit_op(kit, COLL_CONSTRUCT, id, NULL, N);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct tree tree = kit_tree(all, 2), later = kit_tree(without6, 2);
        uint32_t root = later.root, here = tree_child(&later, root, 0);
        if (tree.root != here && tree.root != 6) {
            silence.held_to = here;
            for (uint32_t from = 0; from < N; from++)
                silence.release[from][here] = true;
            kit_call(kit, all, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
            loopback_run(kit->net, 1000);
            const struct kit_call *first = kit_call(kit, all, here, (struct kit_ask){0});
            loopback_local_status(kit->net, here, -88);
            const struct kit_call *call =
                kit_call(kit, without6, root, (struct kit_ask){.gone = &gone6});
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 0);
            for (uint32_t from = 0; from < N; from++)
                silence.release[from][here] = false;
            engine_take(loopback_engine(kit->net, here), root, FRAME_RELEASE, silence.held,
                        silence.len);
            assert_int_equal(first->status, LOOPBACK_TIMEOUT);
            kit_call(kit, without6, here, (struct kit_ask){.gone = &gone6, .status = -88});
            loopback_run(kit->net, 1000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, -88);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone6);
    }
    assert_in_range(shown, 1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tries_that_fail_at_once),
        cmocka_unit_test(what_fails_is_told_below),
        cmocka_unit_test(a_try_that_is_given_up_twice),
        cmocka_unit_test(a_loss_that_was_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
