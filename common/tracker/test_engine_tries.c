/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of tries.c and skipped.c: operations that are tried again by those that are left.
 */
#include "common/tracker/rollup/rollup.h"
#include "common/tracker/test_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 7, LEFT = N - 2, LONG_MS = 3600000 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

static struct procset servers(uint32_t mask)
{
    struct procset set = {0};
    for (uint32_t i = 0; i < N; i++)
        if (mask & 1u << i)
            procset_add(&set, "job", i, i);
    procset_canonical(&set);
    return set;
}

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
        bool owed;
    } tries[] = {
        {-77, false, NO6, BOTH, false, COLL_CONSTRUCT, "skip", true},
        {LOOPBACK_TIMEOUT, true, NO6, BOTH, false, COLL_CONSTRUCT, "skip", true},
        {-77, true, NO6, BOTH, false, COLL_CONSTRUCT, "skip", false},
        {-77, false, NO6, 0, false, COLL_CONSTRUCT, "skip", false}, /* our first one */
        {-77, false, NO6, BOTH, true, COLL_CONSTRUCT, "skip", false},
        {-77, false, NO6, ONLY6, false, COLL_CONSTRUCT, "skip", false},
        {-77, false, NO4, BOTH, false, COLL_CONSTRUCT, "skip", false},
        {-77, false, NO6, BOTH, false, COLL_DESTRUCT, "skip", false},
        {-77, false, NO6, BOTH, false, COLL_CONSTRUCT, "other", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        uint32_t nodes[N], n = 0;
        struct kit_ask ask = {0};
        struct procset gone_now = servers(tries[i].gone);
        for (uint32_t node = 0; node < N; node++)
            if (tries[i].theirs & 1u << node)
                nodes[n++] = node;
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, tries[i].kind, tries[i].id, nodes, n);
        struct kit_op *own = kit_op(kit, COLL_CONSTRUCT, "skip", NULL, N - 2);
        loopback_local_status(kit->net, nodes[n - 1], tries[i].names ? -88 : 0);
        kit_call(kit, op, n - 1, (struct kit_ask){.status = tries[i].status});
        loopback_run(kit->net, 1000);
        if (tries[i].made) { /* what is owed then is of the operation after it */
            ask.op = kit_call(kit, op, 0, ask)->call.op;
            kit_call(kit, op, n - 1, (struct kit_ask){.status = tries[i].status});
            loopback_run(kit->net, 1000);
        }
        ask.gone = tries[i].gone != 0 ? &gone_now : NULL;
        const struct kit_call *call = kit_call(kit, own, 0, ask);
        assert_int_equal(call->answers, tries[i].owed);
        if (tries[i].owed)
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

/* Server 0 knows both lost ones, and its later try waits when the earlier one, which it has
 * skipped, fails for good: it gets that failure, and no server keeps what it has contributed. */
static void a_skipped_try_fails_later(void **state)
{
    (void)state;
    for (uint32_t early = 0; early < LEFT; early++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone = servers(0x60);
        const struct kit_call *call =
            kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 1000);
        assert_int_equal(call->answers, 0);
        kit_call(kit, without6, 5, (struct kit_ask){.status = -77});
        loopback_run(kit->net, 100);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != early)
                kit_call(kit, without6, slot, (struct kit_ask){0});
        loopback_run(kit->net, 2000);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, -77);
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
        struct procset gone = servers(0x60);
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
                             (struct kit_ask){.status = slot == tree.root ? -77 : 0});
            loopback_run(kit->net, 2000);
            const struct kit_call *call =
                kit_call(kit, without_both, below, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, -77);
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

/* The server that decides has failed a try for good, has told one other server alone, and is lost.
 * A server that could not know has given up that try for the loss, and tries again: the others do
 * not, and it is told why. */
static void a_try_that_was_given_up(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        char id[8];
        uint8_t sides[N] = {0};
        uint32_t nodes[N], n = 0;
        struct kit *kit = kit_new(&seven);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *first = kit_op(kit, COLL_CONSTRUCT, id, NULL, N);
        struct tree tree = kit_tree(first, 2);
        uint32_t told = tree_child(&tree, tree.root, 0), other = tree_child(&tree, tree.root, 1);
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != tree.root)
                nodes[n++] = slot;
        struct kit_op *again = kit_op(kit, COLL_CONSTRUCT, id, nodes, n);
        struct procset gone = servers(1u << tree.root);
        if (tree_child(&tree, other, 0) != TREE_NONE) {
            sides[tree.root] = sides[told] = 1;
            struct kit_call *call = kit_call(kit, first, other, (struct kit_ask){0});
            loopback_run(kit->net, 100);
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 1000);
            kit_call(kit, first, told, (struct kit_ask){0});
            kit_call(kit, first, tree.root, (struct kit_ask){.status = -77});
            loopback_run(kit->net, 100);
            loopback_kill(kit->net, tree.root, 0, 0);
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, LOOPBACK_LOST);
            uint32_t slot = other > tree.root ? other - 1 : other;
            const struct kit_call *later =
                kit_call(kit, again, slot, (struct kit_ask){.gone = &gone, .op = call->call.op});
            loopback_run(kit->net, 20000);
            assert_int_equal(later->answers, 1);
            assert_int_equal(later->status, -77);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 40);
}

/* The same before the server's call: the word of who decided takes the place of the loss that is
 * owed. By the loss the call would be tried again, and by no other server. */
static void the_word_on_what_was_given_up(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        uint8_t sides[N] = {0};
        struct kit *kit = kit_new(&seven);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, id, NULL, N);
        struct tree tree = kit_tree(op, 2);
        uint32_t told = tree_child(&tree, tree.root, 0), other = tree_child(&tree, tree.root, 1);
        uint32_t below = tree_child(&tree, other, 0);
        struct engine *knows = loopback_engine(kit->net, told);
        if (below != TREE_NONE) {
            sides[tree.root] = sides[told] = 1;
            kit_call(kit, op, below, (struct kit_ask){0});
            loopback_run(kit->net, 1000);
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 1000);
            kit_call(kit, op, tree.root, (struct kit_ask){.status = -77});
            loopback_run(kit->net, 100);
            loopback_kill(kit->net, tree.root, 0, 0);
            loopback_run(kit->net, 2000);
            struct tracker *t = tracker_find(knows, op->sig, op->siglen);
            rollup_tell(knows, t, other, tracker_past_after(t, 0), 0);
            loopback_run(kit->net, 100);
            const struct kit_call *call = kit_call(kit, op, other, (struct kit_ask){0});
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, -77);
            shown++;
        }
        kit_end(kit);
    }
    assert_in_range(shown, 1, 20);
}

/* Two failures are owed to a server that has called neither: that of its own try, and that of a try
 * with more participants in the operation after it, which counted one as alive again. */
static void the_older_failure_comes_first(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct kit *kit = kit_new(&seven);
        struct procset gone = servers(0x60);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *more = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct kit_op *own = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        for (uint32_t slot = 1; slot < LEFT; slot++)
            kit_call(kit, own, slot,
                     (struct kit_ask){.status = slot == 1 ? -77 : 0, .gone = &gone});
        loopback_run(kit->net, 2000);
        for (uint32_t slot = 1; slot < N - 1; slot++)
            kit_call(kit, more, slot, (struct kit_ask){.status = slot == 1 ? -78 : 0});
        loopback_run(kit->net, 2000);
        const struct kit_call *call = kit_call(kit, own, 0, (struct kit_ask){.gone = &gone});
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, -77);
        kit_end(kit);
        procset_free(&gone);
    }
}

/* A success is on its way to a server when the next operation fails for good, under more
 * participants, and that is heard first. */
static void a_success_that_comes_later(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 80; i++) {
        char id[8];
        uint8_t sides[N] = {0};
        struct kit *kit = kit_new(&seven);
        struct procset gone = servers(0x60);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *more = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct kit_op *own = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        struct tree tree = kit_tree(own, 2), next = kit_tree(more, 2);
        uint32_t late = tree_child(&next, next.root, 0);
        if (next.root < LEFT && late < LEFT && late != tree.root &&
            tree_child(&tree, late, 0) == TREE_NONE && tree_parent(&tree, late) != next.root) {
            const struct kit_call *call = NULL;
            for (uint32_t slot = 0; slot < LEFT; slot++) {
                const struct kit_call *made =
                    slot == tree.root ? NULL
                                      : kit_call(kit, own, slot, (struct kit_ask){.gone = &gone});
                call = slot == late ? made : call;
            }
            loopback_run(kit->net, 1000);
            sides[late] = 1;
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 600);
            kit_call(kit, own, tree.root, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 200);
            sides[next.root] = 1;
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 400);
            kit_call(kit, more, next.root, (struct kit_ask){.status = -77});
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
            call = kit_call(kit, more, late, (struct kit_ask){0});
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, -77);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 80);
}

/* The others have made the next operation already, and it has failed, before the later try has the
 * failure of the one that it has skipped: each of the two failures is the answer to its own call.
 */
static void the_next_one_fails_at_once(void **state)
{
    (void)state;
    for (uint32_t early = 0; early < LEFT; early++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone = servers(0x60);
        const struct kit_call *call =
            kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 1000);
        kit_call(kit, without6, 5, (struct kit_ask){.status = -77});
        loopback_run(kit->net, 100);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != early)
                kit_call(kit, without6, slot, (struct kit_ask){0});
        loopback_run(kit->net, 200);
        assert_int_equal(call->answers, 0);
        for (uint32_t slot = 0; slot < LEFT; slot++)
            if (slot != early)
                kit_call(kit, without_both, slot, (struct kit_ask){.gone = &gone, .status = -78});
        loopback_run(kit->net, 200);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, -77);
        call = kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
        loopback_run(kit->net, 1000);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, -78);
        kit_end(kit);
        procset_free(&gone);
    }
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
        struct procset gone6 = servers(0x40), gone = servers(0x60);
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

/* A server learns of a failure before the server above it, which then takes the next call of the
 * first one for the call that has failed. */
static void a_failure_by_another_way(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        char id[8];
        uint8_t sides[N] = {0};
        struct kit *kit = kit_new(&seven);
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, id, NULL, N);
        struct tree tree = kit_tree(op, 2);
        uint32_t above = tree_child(&tree, tree.root, 0), below = tree_child(&tree, above, 0);
        uint32_t other = i % 2 == 0 ? tree_child(&tree, above, 1) : TREE_NONE;
        struct engine *root = loopback_engine(kit->net, tree.root);
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != tree.root && slot != other)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        sides[tree.root] = 1;
        loopback_partition(kit->net, sides, loopback_now(kit->net) + 3000);
        kit_call(kit, op, tree.root, (struct kit_ask){.status = -77});
        loopback_partition(kit->net, sides, loopback_now(kit->net));
        struct tracker *t = tracker_find(root, op->sig, op->siglen);
        rollup_tell(root, t, below, tracker_past_after(t, 0), 0);
        loopback_run(kit->net, 100);
        const struct kit_call *next = kit_call(kit, op, below, (struct kit_ask){0});
        loopback_run(kit->net, 5000);
        assert_int_equal(next->answers, 0);
        if (other != TREE_NONE)
            kit_call(kit, op, other, (struct kit_ask){0});
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != below)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 2000);
        assert_int_equal(next->answers, 1);
        assert_int_equal(next->status, 0);
        kit_end(kit);
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
    struct procset gone = servers(0x60);
    struct tree tree = kit_tree(without_both, 2);
    uint32_t early = tree_child(&tree, tree.root, 0);
    (void)state;
    const struct kit_call *call =
        kit_call(kit, without_both, early, (struct kit_ask){.gone = &gone});
    loopback_run(kit->net, 200);
    kit_call(kit, without6, 5, (struct kit_ask){.status = -77});
    loopback_run(kit->net, 5000);
    assert_int_equal(call->answers, 1);
    assert_int_equal(call->status, -77);
    for (uint32_t node = 0; node < N; node++)
        engine_walk(loopback_engine(kit->net, node), count, &under_way);
    assert_int_equal(under_way, 0);
    kit_end(kit);
    procset_free(&gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_that_is_skipped),
        cmocka_unit_test(a_skipped_try_fails_later),
        cmocka_unit_test(a_skipped_try_that_nobody_told_of),
        cmocka_unit_test(a_try_that_was_given_up),
        cmocka_unit_test(the_word_on_what_was_given_up),
        cmocka_unit_test(the_older_failure_comes_first),
        cmocka_unit_test(a_success_that_comes_later),
        cmocka_unit_test(the_next_one_fails_at_once),
        cmocka_unit_test(a_try_that_one_has_skipped),
        cmocka_unit_test(a_failure_by_another_way),
        cmocka_unit_test(what_ends_soon_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
