/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is past: a call that its server has given up, a contribution that comes twice, a
 * failure that one server has forgotten and another has not, a job that has ended and runs again.
 */
#include "common/tracker/test_silence.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = N - 2 };

/* An operation of all, and a way down its tree. */
struct way {
    struct kit *kit;
    struct kit_op *op;
    uint32_t root, above, last; /* each is above the next one */
};

static struct way way_of(enum coll_kind kind, const char *id)
{
    struct way w = {.kit = silent_kit()};
    w.op = kit_op(w.kit, kind, id, NULL, N);
    struct tree tree = kit_tree(w.op, 2);
    w.root = tree.root;
    w.above = tree_child(&tree, w.root, 0);
    w.last = tree_child(&tree, w.above, 0);
    return w;
}

/* A construct succeeds, but the release does not reach the last server, which gives up by its
 * deadline. All but the root call again. @return the last server's second call */
static const struct kit_call *gives_up(const struct way *w)
{
    const struct kit_call *again = NULL;
    silence.held_to = w->last;
    silence.release[w->above][w->last] = true;
    for (uint32_t slot = 0; slot < N; slot++)
        kit_call(w->kit, w->op, slot, (struct kit_ask){.timeout = slot == w->last});
    loopback_run(w->kit->net, 1000 + 2 * ENGINE_GRACE_MS);
    for (const struct kit_call *call = w->kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, call->slot == w->last ? LOOPBACK_TIMEOUT : 0);
    }
    for (uint32_t slot = 0; slot < N; slot++) {
        const struct kit_call *call =
            slot == w->root ? NULL : kit_call(w->kit, w->op, slot, (struct kit_ask){0});
        again = slot == w->last ? call : again;
    }
    loopback_run(w->kit->net, 1000);
    assert_int_equal(again->answers, 0);
    return again;
}

/* The root is lost, and the server above. The others have the success of the call that was given
 * up: it is no answer to the question about the next call. */
static void a_success_of_a_call_that_was_given_up(void **state)
{
    struct way w = way_of(COLL_CONSTRUCT, "up");
    (void)state;
    const struct kit_call *again = gives_up(&w);
    loopback_kill(w.kit->net, w.root, 0, 500);
    loopback_kill(w.kit->net, w.above, 0, 500);
    loopback_run(w.kit->net, 3000);
    assert_int_equal(again->answers, 1);
    assert_int_equal(again->status, LOOPBACK_LOST);
    kit_end(w.kit);
}

/* The success of the call that was given up comes twice, late, and by ways on which the server's
 * own number is not known. */
static void a_late_success_comes_twice(void **state)
{
    struct way w = way_of(COLL_CONSTRUCT, "up");
    (void)state;
    const struct kit_call *again = gives_up(&w);
    memset(silence.held, 0, 8); /* the number */
    for (int i = 0; i < 2; i++)
        engine_take(loopback_engine(w.kit->net, w.last), w.above, FRAME_RELEASE, silence.held,
                    silence.len);
    assert_int_equal(again->answers, 0);
    kit_end(w.kit);
}

/* The root's word on a fence comes after the deadline of the server below, which has given up. */
static void gives_up_a_fence(const struct way *w)
{
    uint8_t sides[N] = {0};
    sides[w->root] = 1;
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != w->root)
            kit_call(w->kit, w->op, slot, (struct kit_ask){.timeout = slot == w->above});
    loopback_run(w->kit->net, 300);
    loopback_partition(w->kit->net, sides, loopback_now(w->kit->net) + 2 * ENGINE_GRACE_MS);
    kit_call(w->kit, w->op, w->root, (struct kit_ask){0});
    loopback_run(w->kit->net, 1000 + 2 * ENGINE_GRACE_MS);
    for (const struct kit_call *call = w->kit->calls; call != NULL; call = call->next)
        if (call->slot == w->above || call->slot == w->root)
            assert_int_equal(call->status, call->slot == w->above ? LOOPBACK_TIMEOUT : 0);
}

/* A server says its contribution again, as it hears that the server above had ended the operation
 * before without it, or the failure of a try before. What comes when this operation has succeeded
 * is no contribution to the next one. */
static void a_contribution_after_the_end(void **state)
{
    enum { FAILED, GIVEN_UP, LATER_TRY, BEFORE };
    struct procset gone = kit_servers(1u << N);
    (void)state;
    for (int before = FAILED; before < BEFORE; before++) {
        bool later = before == LATER_TRY;
        struct way w = way_of(later ? COLL_CONSTRUCT : COLL_FENCE, "end");
        struct kit_ask ask = {.gone = later ? &gone : NULL};
        silence.keep[w.last] = true;
        if (before == FAILED) {
            kit_call_all(w.kit, w.op, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
            loopback_run(w.kit->net, 1000);
            assert_int_equal(w.kit->calls->status, LOOPBACK_TIMEOUT);
        } else if (before == GIVEN_UP) {
            gives_up_a_fence(&w);
        }
        kit_call_all(w.kit, w.op, ask);
        loopback_run(w.kit->net, 1000);
        assert_int_equal(w.kit->calls->answers, 1);
        assert_int_equal(w.kit->calls->status, 0);
        engine_take(loopback_engine(w.kit->net, w.above), w.last, FRAME_CONTRIB, silence.held,
                    silence.len);
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != w.last)
                kit_call(w.kit, w.op, slot, ask);
        loopback_run(w.kit->net, 1000);
        assert_int_equal(w.kit->calls->answers, 0);
        kit_call(w.kit, w.op, w.last, ask);
        loopback_run(w.kit->net, 1000);
        for (uint32_t slot = 0; slot < N; slot++)
            assert_int_equal(w.kit->calls->seen[slot], later ? 1 : 2);
        kit_end(w.kit);
    }
    procset_free(&gone);
}

/* The root has succeeded, and its word is on its way to a server, below which another one is lost
 * meanwhile. The server has said all, and does not report the loss: it would be taken for the
 * failure of the next operation. */
static void a_loss_after_all_was_said(void **state)
{
    struct way w = way_of(COLL_CONSTRUCT, "all");
    (void)state;
    silence.release[w.root][w.above] = true;
    kit_call_all(w.kit, w.op, (struct kit_ask){0});
    loopback_run(w.kit->net, 300);
    loopback_kill(w.kit->net, w.last, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(w.kit->net, w.above), w.last);
    loopback_run(w.kit->net, 2 * ENGINE_ASK_MS);
    const struct kit_call *next = kit_call(w.kit, w.op, w.root, (struct kit_ask){0});
    loopback_run(w.kit->net, 1000);
    assert_int_equal(next->answers, 0);
    kit_end(w.kit);
}

/* A server has given up the try without 6 by its deadline. It has not heard that this try has
 * failed for good when it tries the next operation without both: the server above drops that, and
 * tells it. Then the server says it again. */
static void a_try_after_one_that_was_given_up(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t late = 0; late < LEFT; late++) {
        struct kit *kit = silent_kit();
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, "tries", NULL, LEFT);
        struct procset gone = kit_servers(0x60);
        struct tree tree = kit_tree(without6, 2), next = kit_tree(without_both, 2);
        uint32_t above = tree_parent(&tree, late);
        bool apart = above != TREE_NONE && tree_parent(&next, late) != above &&
                     tree_parent(&next, above) != late; /* the link is silent */
        if (apart && next.root != late) {
            silence.release[above][late] = true;
            for (uint32_t slot = 0; slot < N - 1; slot++)
                kit_call(kit, without6, slot,
                         (struct kit_ask){.timeout = slot == late,
                                          .status = slot == 5 ? LOOPBACK_TIMEOUT : 0});
            loopback_run(kit->net, 1000 + 2 * ENGINE_GRACE_MS);
            kit_call(kit, without_both, late, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 1000);
            for (uint32_t slot = 0; slot < LEFT; slot++)
                if (slot != late)
                    kit_call(kit, without_both, slot, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 2000);
            for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
                assert_int_equal(call->answers, 1);
                if (call->op == without_both)
                    assert_int_equal(call->status, 0);
            }
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, LEFT);
}

/* A server tells another one of the failures that it knows before it makes a later try, but not of
 * one that the other server may have forgotten. */
static void an_old_failure_is_not_told(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        struct kit *kit = silent_kit();
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *without6 = kit_op(kit, COLL_CONSTRUCT, id, NULL, N - 1);
        struct kit_op *without_both = kit_op(kit, COLL_CONSTRUCT, id, NULL, LEFT);
        struct procset gone = kit_servers(0x60), gone6 = kit_servers(0x40);
        struct tree tree = kit_tree(without6, 2), next = kit_tree(without_both, 2);
        uint32_t teller = tree_child(&next, next.root, 0), told = next.root;
        uint32_t above = tree_parent(&tree, teller);
        if (above != TREE_NONE && above != told && tree_child(&tree, teller, 0) == TREE_NONE) {
            silence.held_to = teller;
            silence.release[above][teller] = true;
            kit_call(kit, without6, 5, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
            loopback_run(kit->net, 10000);
            engine_take(loopback_engine(kit->net, teller), above, FRAME_RELEASE, silence.held,
                        silence.len);
            loopback_run(kit->net, ENGINE_REMEMBER_MS - 5000); /* forgotten by one of the two */
            kit_call(kit, without_both, teller, (struct kit_ask){.gone = &gone});
            loopback_run(kit->net, 1000);
            assert_int_equal(
                kit_call(kit, without6, told, (struct kit_ask){.gone = &gone6})->answers, 0);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
        procset_free(&gone6);
    }
    assert_in_range(shown, 1, 20);
}

enum { JOBS = 4, AGAIN = JOBS - 1 /* the job of this server is requeued */ };

static struct kit *kit_of_jobs(void)
{
    const struct loopback_conf conf = {
        .nnodes = JOBS, .arity = 2, .seed = 11, .foreign = true, .delay_max = 20, .reorder = true};
    return kit_new(&conf);
}

/* An operation of all. */
static struct kit_op *op_of_jobs(struct kit *kit, enum coll_kind kind, const char *id)
{
    struct kit_op *op = kit_op(kit, kind, id, NULL, JOBS);
    struct procset members = {0};
    struct wire_out out = {0};
    assert_int_equal(procset_add(&members, "again", AGAIN, AGAIN), 0);
    assert_int_equal(procset_add(&members, "job", 0, AGAIN - 1), 0);
    signature_write(&out, kind, id, &members);
    free(op->sig);
    op->sig = wire_out_take(&out, &op->siglen);
    procset_free(&members);
    return op;
}

static void requeue(struct kit *kit)
{
    loopback_kill(kit->net, AGAIN, 0, 100);
    loopback_run(kit->net, 5000);
    loopback_rerun(kit->net, AGAIN, "again");
}

/* An operation fails, as a job ends. The next run of the job has the same name, and so the
 * operation the same signature; but its server is another one, and nothing of it is lost. */
static void a_job_that_runs_again(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    uint32_t roots = 0;
    (void)state;
    for (enum coll_kind kind = COLL_FENCE; kind < COLL_KIND_END; kind++)
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            struct kit *kit = kit_of_jobs();
            struct kit_op *op = op_of_jobs(kit, kind, ids[i]);
            const struct kit_call *call;
            roots |= 1u << kit_tree(op, 2).root;
            for (uint32_t slot = 0; slot < AGAIN; slot++)
                kit_call(kit, op, slot, (struct kit_ask){0});
            loopback_run(kit->net, 300);
            requeue(kit);
            for (call = kit->calls; call != NULL; call = call->next)
                assert_int_equal(call->status, LOOPBACK_LOST);
            kit_call_all(kit, op, (struct kit_ask){0});
            loopback_run(kit->net, 5000);
            call = kit->calls;
            for (uint32_t slot = 0; slot < JOBS; slot++, call = call->next) {
                assert_int_equal(call->answers, 1);
                assert_int_equal(call->status, 0);
            }
            kit_end(kit);
        }
    assert_int_equal(roots, (1u << JOBS) - 1);
}

/* What has succeeded with a job is no answer to its next run. */
static void a_success_of_the_run_before(void **state)
{
    uint32_t shown = 0;
    (void)state;
    for (char id[] = "a"; *id <= 'h'; ++*id) {
        struct kit *kit = kit_of_jobs();
        struct kit_op *op = op_of_jobs(kit, COLL_CONSTRUCT, id);
        uint32_t root = kit_tree(op, 2).root;
        kit_call_all(kit, op, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        kit_assert_all(kit, 0);
        requeue(kit);
        for (uint32_t slot = JOBS; slot-- > 0 && root != AGAIN;)
            if (slot != root)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 300);
        if (root != AGAIN) {
            loopback_kill(kit->net, root, 0, 100);
            loopback_run(kit->net, 5000);
            const struct kit_call *call = kit->calls;
            for (uint32_t i = 0; i < JOBS - 1; i++, call = call->next) {
                assert_int_equal(call->answers, 1);
                assert_int_equal(call->status, LOOPBACK_LOST);
            }
            shown++;
        }
        kit_end(kit);
    }
    assert_in_range(shown, 1, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_of_a_call_that_was_given_up),
        cmocka_unit_test(a_late_success_comes_twice),
        cmocka_unit_test(a_contribution_after_the_end),
        cmocka_unit_test(a_loss_after_all_was_said),
        cmocka_unit_test(a_try_after_one_that_was_given_up),
        cmocka_unit_test(an_old_failure_is_not_told),
        cmocka_unit_test(a_job_that_runs_again),
        cmocka_unit_test(a_success_of_the_run_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
