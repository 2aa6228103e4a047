/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of skipped.c: a server makes a later try, and has skipped one that the others have made.
 */
#include "common/tracker/rollup/rollup.h"
#include "common/tracker/test_silence.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = N - 2 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

/* Others have tried without 6 and have failed for good; here it was known that 5 is lost, too. The
 * try without both gets their failure, as they make no such try: not when they go on after it,
 * when it was no try between the first one and ours, when we have made it ourselves, nor when it
 * was another operation. */
static void a_try_that_is_skipped(void **state)
{
    enum { NO4 = 0x6f, NO6 = 0x3f, ONLY6 = 0x40, BOTH = 0x60 };
    static const struct {
        int32_t status;
        bool names; /* who is lost */
        uint32_t theirs, gone;
        bool made; /* the try that failed */
        enum coll_kind kind;
        const char *id;
        bool ends;
    } tries[] = {
        {LOOPBACK_TIMEOUT, false, NO6, BOTH, false, COLL_CONSTRUCT, "skip", true},
        {LOOPBACK_TIMEOUT, true, NO6, BOTH, false, COLL_CONSTRUCT, "skip", true},
        {-77, true, NO6, BOTH, false, COLL_CONSTRUCT, "skip", false},
        {LOOPBACK_TIMEOUT, false, NO6, 0, false, COLL_CONSTRUCT, "skip", false}, /* our first one */
        {LOOPBACK_TIMEOUT, false, NO6, BOTH, true, COLL_CONSTRUCT, "skip", false},
        {LOOPBACK_TIMEOUT, false, NO6, ONLY6, false, COLL_CONSTRUCT, "skip", false},
        {LOOPBACK_TIMEOUT, false, NO4, BOTH, false, COLL_CONSTRUCT, "skip", false},
        {LOOPBACK_TIMEOUT, false, NO6, BOTH, false, COLL_DESTRUCT, "skip", false},
        {LOOPBACK_TIMEOUT, false, NO6, BOTH, false, COLL_CONSTRUCT, "other", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        uint32_t nodes[N], n = 0;
        struct kit_ask ask = {0};
        struct procset gone_now = kit_servers(tries[i].gone);
        for (uint32_t node = 0; node < N; node++)
            if (tries[i].theirs & 1u << node)
                nodes[n++] = node;
        struct kit *kit = kit_new(&seven);
        ask.op = 1; /* that of its first try */
        loopback_engine(kit->net, 0)->numbers = 2;
        struct kit_op *op = kit_op(kit, tries[i].kind, tries[i].id, nodes, n);
        struct kit_op *own = kit_op(kit, COLL_CONSTRUCT, "skip", NULL, N - 2);
        loopback_local_status(kit->net, nodes[n - 1], tries[i].names ? -88 : 0);
        kit_call(kit, op, n - 1, (struct kit_ask){.status = tries[i].status});
        loopback_run(kit->net, 1000);
        if (tries[i].made) { /* what fails then is of the operation after it */
            ask.op = kit_call(kit, op, 0, (struct kit_ask){0})->call.op;
            kit_call(kit, op, n - 1, (struct kit_ask){.status = tries[i].status});
            loopback_run(kit->net, 1000);
        }
        ask.gone = tries[i].gone != 0 ? &gone_now : NULL;
        const struct kit_call *call = kit_call(kit, own, 0, ask);
        assert_int_equal(call->answers, tries[i].ends);
        if (tries[i].ends)
            assert_int_equal(call->status, tries[i].status);
        kit_end(kit);
        procset_free(&gone_now);
    }
}

/* All that are left make the next operation of that id, and have contributions of that alone: an
 * operation of its own to the kit, whose calls have bytes of their own. */
static void the_next_one_is_not_touched(struct kit *kit, const char *id, const struct procset *gone)
{
    struct kit_op *next = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
    for (uint32_t slot = 0; slot < LEFT; slot++) {
        const struct kit_call *call = kit_call(kit, next, slot, (struct kit_ask){.gone = gone});
        assert_int_equal(call->answers, 0);
    }
    loopback_run(kit->net, 1000);
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
        if (call->op == next) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
        }
}

/* Server @p early knows both lost ones, and its later try waits when the earlier one, which it has
 * skipped, fails for good. @return its call */
static const struct kit_call *skips_what_fails(struct kit *kit, struct kit_op *without_both,
                                               uint32_t early, const struct procset *gone)
{
    struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
    const struct kit_call *call =
        kit_call(kit, without_both, early, (struct kit_ask){.gone = gone});
    loopback_run(kit->net, 1000);
    assert_int_equal(call->answers, 0);
    kit_call(kit, without6, 5, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    loopback_run(kit->net, 300);
    assert_int_equal(call->answers, 0);
    return call;
}

/* It gets that failure, and no server keeps what it has contributed. */
static void a_skipped_try_fails_later(void **state)
{
    (void)state;
    for (uint32_t early = 0; early < LEFT; early++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone = kit_servers(0x60);
        const struct kit_call *call = skips_what_fails(kit, without_both, early, &gone);
        loopback_run(kit->net, 1800);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, LOOPBACK_TIMEOUT);
        the_next_one_is_not_touched(kit, "tries", &gone);
        kit_end(kit);
        procset_free(&gone);
    }
}

/* A server has not heard that the earlier try has failed for good, since 5, which was to pass that
 * on, is lost. The server that gets its contribution to the later one says so. */
static void a_skipped_try_that_nobody_told_of(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        char id[8];
        struct procset gone = kit_servers(0x60);
        struct kit *kit = kit_new(&seven);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        struct tree tree = kit_tree(without6, 2);
        uint32_t below = tree_child(&tree, 5, 0);
        if (below != TREE_NONE && tree.root != 5 && kit_tree(without_both, 2).root != below) {
            loopback_kill(kit->net, 5, LONG_MS, LONG_MS);
            for (uint32_t slot = 0; slot < LEFT; slot++)
                if (!tree_below(&tree, 5, slot))
                    kit_call(kit, without6, slot,
                             (struct kit_ask){.status = slot == tree.root ? LOOPBACK_TIMEOUT : 0});
            loopback_run(kit->net, 2000);
            const struct kit_call *call =
                kit_call(kit, without_both, below, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, LOOPBACK_TIMEOUT);
            for (uint32_t slot = 0; slot < LEFT; slot++)
                if (tree_below(&tree, 5, slot) && slot != below)
                    kit_call(kit, without_both, slot, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 2000);
            the_next_one_is_not_touched(kit, id, &gone);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 40);
}

/* Servers 0 to 4 try without 6, and one of them without 5 as well, before or after the others: it
 * says so, and all try that. */
static void a_try_that_one_has_skipped(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2 * LEFT; i++) {
        uint32_t ahead = i / 2;
        bool first = i % 2 == 0;
        struct kit *kit = kit_new(&seven);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone6 = kit_servers(0x40), gone = kit_servers(0x60);
        const struct kit_call *skips = NULL, *waits[N - 1];
        if (first)
            skips = kit_call(kit, without_both, ahead, (struct kit_ask){.gone = &gone});
        for (uint32_t slot = 0; slot < N - 1; slot++)
            if (slot != ahead)
                waits[slot] = kit_call(kit, without6, slot, (struct kit_ask){.gone = &gone6});
        loopback_run(kit->net, first ? 10000 : 2000);
        if (!first)
            skips = kit_call(kit, without_both, ahead, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 2000);
        assert_int_equal(skips->answers, 0);
        for (uint32_t slot = 0; slot < N - 1; slot++)
            if (slot != ahead) {
                assert_int_equal(waits[slot]->answers, 1);
                assert_int_equal(waits[slot]->status, LOOPBACK_LOST);
            }
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != ahead)
                kit_call(kit, without_both, slot,
                         (struct kit_ask){.gone = &gone, .op = waits[slot]->call.op});
        loopback_run(kit->net, 2000);
        assert_int_equal(skips->answers, 1);
        assert_int_equal(skips->status, 0);
        kit_end(kit);
        procset_free(&gone6);
        procset_free(&gone);
    }
}

/* The others make the next operation already, and fail it, before the later try has the failure of
 * the one that it has skipped: each of the two failures is the answer to its own call. */
static void the_next_one_fails(void **state)
{
    (void)state;
    for (uint32_t early = 0; early < LEFT; early++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone = kit_servers(0x60);
        const struct kit_call *call = skips_what_fails(kit, without_both, early, &gone);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != early)
                kit_call(kit, without_both, slot, (struct kit_ask){.gone = &gone, .status = -78});
        loopback_run(kit->net, 2000);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, LOOPBACK_TIMEOUT);
        kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 4000);
        for (call = kit->calls; call != NULL && call->status != LOOPBACK_TIMEOUT;
             call = call->next) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, -78);
        }
        kit_end(kit);
        procset_free(&gone);
    }
}

/* Two losses are learnt in different order. Servers 0 and 1 have lost 6 and then 5, and their first
 * operation has failed for good without both. Servers 2 and 3 still make it, and have lost 6 and
 * then 4. In the next operation 0 and 1 lose 4 as well, before they hear of 5 again. Their
 * contributions to the try without 4 and 6 must not meet those of 2 and 3, which would take the
 * failure of that try for their first operation, and make it once more for the next one.
 */
static void two_losses_in_different_order(void **state)
{
    static const uint32_t no46[] = {0, 1, 2, 3, 5};
    struct procset gone56 = kit_servers(0x60), gone46 = kit_servers(0x50), gone = kit_servers(0x70);
    struct kit *kit = kit_new(&seven);
    struct kit_op *without56 = kit_op(kit, COLL_CONSTRUCT, "order", NULL, LEFT);
    struct kit_op *without46 = kit_op(kit, COLL_CONSTRUCT, "order", no46, LEFT);
    struct kit_op *without_all = kit_op(kit, COLL_CONSTRUCT, "order", NULL, LEFT - 1);
    struct kit_op *next46 = kit_op(kit, COLL_CONSTRUCT, "order", no46, LEFT);
    struct kit_op *next_all = kit_op(kit, COLL_CONSTRUCT, "order", NULL, LEFT - 1);
    const struct kit_call *first[4], *next[4];
    (void)state;
    for (uint32_t slot = 0; slot < 2; slot++)
        kit_call(kit, without56, slot, (struct kit_ask){.gone = &gone56});
    for (uint32_t slot = 2; slot < 4; slot++)
        loopback_engine(kit->net, slot)->numbers = 1;
    kit_call(kit, without56, 4, (struct kit_ask){.gone = &gone56, .timeout = 1});
    loopback_run(kit->net, 1100);
    for (uint32_t slot = 2; slot < 4; slot++) /* what is of their first try, before that failure */
        first[slot] = kit_call(kit, without46, slot, (struct kit_ask){.gone = &gone46, .op = 1});
    for (uint32_t slot = 0; slot < 2; slot++)
        next[slot] = kit_call(kit, next46, slot, (struct kit_ask){.gone = &gone46});
    loopback_run(kit->net, 100);
    loopback_local_status(kit->net, 5, -88);
    kit_call(kit, without46, 4, (struct kit_ask){.gone = &gone46, .status = -88});
    loopback_run(kit->net, 10000);
    for (uint32_t slot = 0; slot < 4; slot++) {
        const struct kit_call *before = slot < 2 ? next[slot] : first[slot];
        struct kit_ask ask = {.gone = &gone, .op = before->call.op};
        assert_int_equal(before->answers, 1);
        if (slot < 2)
            next[slot] = kit_call(kit, next_all, slot, ask);
        else
            first[slot] = kit_call(kit, without_all, slot, ask);
    }
    loopback_run(kit->net, 2000);
    for (uint32_t slot = 2; slot < 4; slot++) {
        assert_int_equal(first[slot]->status, LOOPBACK_TIMEOUT);
        struct kit_ask ask = {.gone = &gone46, .status = slot == 2 ? -78 : 0};
        next[slot] = kit_call(kit, next46, slot, ask);
        if (next[slot]->answers == 1 && next[slot]->status == LOOPBACK_LOST) {
            ask.gone = &gone;
            ask.op = next[slot]->call.op;
            next[slot] = kit_call(kit, next_all, slot, ask);
        }
    }
    loopback_run(kit->net, 10000);
    for (uint32_t slot = 0; slot < 4; slot++) {
        assert_int_equal(next[slot]->answers, 1);
        assert_int_equal(next[slot]->status, -78);
    }
    kit_end(kit);
    procset_free(&gone56);
    procset_free(&gone46);
    procset_free(&gone);
}

/* Server 0 has gone on without 5 in another group. The try of 5 alone with it fails, although no
 * call of server 0 waits when it comes, or when it is asked for. */
static void a_try_with_one_that_is_lost(void **state)
{
    static const uint32_t both[] = {0, 5};
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct procset gone5 = kit_servers(0x20), gone6 = kit_servers(0x40);
        struct kit *kit = kit_new(&seven);
        const struct kit_call *tries = NULL;
        snprintf(id, sizeof id, "%u", i / 2);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, id, both, 2);
        struct kit_op *other = kit_op(kit, COLL_CONSTRUCT, "other", NULL, 1);
        if (i % 2 == 0)
            tries = kit_call(kit, op, 1, (struct kit_ask){.gone = &gone6});
        loopback_run(kit->net, 2000);
        kit_call(kit, other, 0, (struct kit_ask){.gone = &gone5});
        assert_int_equal(kit->calls->status, 0);
        if (i % 2 == 1)
            tries = kit_call(kit, op, 1, (struct kit_ask){.gone = &gone6});
        loopback_run(kit->net, 2000);
        assert_int_equal(tries->answers, 1);
        assert_int_equal(tries->status, LOOPBACK_LOST);
        kit_end(kit);
        procset_free(&gone5);
        procset_free(&gone6);
    }
}

static void count(void *arg, const struct engine_view *view)
{
    uint32_t *n = arg;
    (void)view;
    ++*n;
}

/* A later try that is about to end with the failure of an earlier one has half a second in which it
 * could say what is missing below. The server above, whose call has ended so, must not take that
 * for the next operation. */
static void what_ends_soon_says_nothing(void **state)
{
    uint32_t under_way = 0;
    struct kit *kit = kit_new(&seven);
    struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
    struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
    struct procset gone = kit_servers(0x60);
    struct tree tree = kit_tree(without_both, 2);
    uint32_t early = tree_child(&tree, tree.root, 0);
    (void)state;
    const struct kit_call *call =
        kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
    loopback_run(kit->net, 200);
    kit_call(kit, without6, 5, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    loopback_run(kit->net, 5000);
    assert_int_equal(call->answers, 1);
    assert_int_equal(call->status, LOOPBACK_TIMEOUT);
    for (uint32_t node = 0; node < N; node++)
        engine_walk(loopback_engine(kit->net, node), count, &under_way);
    assert_int_equal(under_way, 0);
    kit_end(kit);
    procset_free(&gone);
}

/* Its namespace is forgotten, and a new job has that name: its process 5 is not the lost one. */
static void a_name_that_is_used_again(void **state)
{
    static const uint32_t both[] = {0, 5};
    struct procset gone5 = kit_servers(0x20), gone6 = kit_servers(0x40);
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "new", both, 2);
    (void)state;
    kit_call(kit, kit_op(kit, COLL_CONSTRUCT, "other", NULL, 1), 0,
             (struct kit_ask){.gone = &gone5});
    engine_nspace_ended(loopback_engine(kit->net, 0), "job");
    const struct kit_call *tries[] = {kit_call(kit, op, 1, (struct kit_ask){.gone = &gone6}),
                                      kit_call(kit, op, 0, (struct kit_ask){.gone = &gone6})};
    loopback_run(kit->net, 2000);
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_int_equal(tries[slot]->answers, 1);
        assert_int_equal(tries[slot]->status, 0);
    }
    kit_end(kit);
    procset_free(&gone5);
    procset_free(&gone6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_that_is_skipped),
        cmocka_unit_test(a_skipped_try_fails_later),
        cmocka_unit_test(a_skipped_try_that_nobody_told_of),
        cmocka_unit_test(a_try_that_one_has_skipped),
        cmocka_unit_test(the_next_one_fails),
        cmocka_unit_test(what_ends_soon_says_nothing),
        cmocka_unit_test(two_losses_in_different_order),
        cmocka_unit_test(a_try_with_one_that_is_lost),
        cmocka_unit_test(a_name_that_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
