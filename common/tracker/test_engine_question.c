/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the questions that servers ask when who would bring the result is lost: of which call an
 * answer is, and when there is none.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/tracker/test_silence.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_doubt(const struct kit *kit, const struct kit_op *op, uint32_t node)
{
    const struct tracker *t = tracker_find(loopback_engine(kit->net, node), op->sig, op->siglen);
    return t != NULL && t->state == TRACKER_DOUBT;
}

static const struct kit_call *call_of(const struct kit *kit, uint32_t node)
{
    const struct kit_call *call = kit->calls;
    while (call->slot != node)
        call = call->next;
    return call;
}

/* A success comes from a lost server after its receiver has said that it has none. It counts no
 * more, also when the receiver has heard of the loss from others only; nor does that of a server
 * between, of whose loss others hear later still. */
static void a_success_that_comes_too_late(void **state)
{
    (void)state;
    for (int two = 0; two < 2; two++) {
        struct kit *kit = silent_kit();
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "late", NULL, N);
        struct tree tree = kit_tree(op, 2);
        uint32_t between = tree_child(&tree, tree.root, 0), other = tree_child(&tree, tree.root, 1);
        uint32_t from = two ? between : tree.root;
        silence.by = from;
        silence.held_to = two ? tree_child(&tree, between, 0) : between;
        memset(silence.release[between], 1, N);
        silence.release[tree.root][between] = !two;
        silence.release[tree.root][other] = true;
        kit_call_all(kit, op, (struct kit_ask){0});
        loopback_run(kit->net, 300);
        loopback_kill(kit->net, tree.root, LONG_MS, LONG_MS);
        if (two)
            loopback_kill(kit->net, between, LONG_MS, LONG_MS);
        struct engine *engine = loopback_engine(kit->net, other);
        engine_lost(engine, tree.root);
        while (!in_doubt(kit, op, silence.held_to))
            loopback_run(kit->net, 1);
        loopback_run(kit->net, two ? 100 : 0);
        if (two)
            engine_lost(engine, between);
        while (two && call_of(kit, other)->answers == 0)
            loopback_run(kit->net, 1);
        engine_take(loopback_engine(kit->net, silence.held_to), from, FRAME_RELEASE, silence.held,
                    silence.len);
        loopback_run(kit->net, 1000);
        for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
            if (!loopback_dead(kit->net, call->slot)) {
                assert_int_equal(call->answers, 1);
                assert_int_equal(call->status, LOOPBACK_LOST);
            }
        kit_end(kit);
    }
}

/* A success that goes round the lost server comes when its receiver has it from the root already,
 * and has called again: it is not that call's. */
static void a_success_is_of_one_call(void **state)
{
    (void)state;
    struct loopback_conf conf = silent_net();
    conf.arity = 1;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "round", NULL, N);
    struct tree tree = kit_tree(op, 1);
    uint32_t above = tree_child(&tree, tree.root, 0), lost = tree_child(&tree, above, 0);
    uint32_t below = tree_child(&tree, lost, 0);
    silence.by = lost;
    silence.held_to = above;
    silence.release[tree.root][above] = true;
    kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    loopback_kill(kit->net, lost, 0, 0);
    while (call_of(kit, below)->answers == 0)
        loopback_run(kit->net, 1);
    assert_int_equal(call_of(kit, below)->status, 0);
    silence.release[tree.root][below] = true; /* it waits for the answer to its second question */
    const struct kit_call *again = kit_call(kit, op, below, (struct kit_ask){0});
    struct engine *engine = loopback_engine(kit->net, above);
    engine_take(engine, tree.root, FRAME_RELEASE, silence.held, silence.len);
    loopback_run(kit->net, 1000);
    for (const struct kit_call *call = again->next; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, call->slot == lost ? LOOPBACK_CLOSING : 0);
    }
    assert_int_equal(again->answers, 0);
    loopback_kill(kit->net, tree.root, 0, 0);
    loopback_run(kit->net, 1000);
    assert_int_equal(again->answers, 1);
    assert_int_equal(again->status, LOOPBACK_LOST);
    kit_end(kit);
}

/* A server that has the success has called again, and asks about that call. For a server that lacks
 * the success yet, the question is no word on the call before. And it asks again: the word that it
 * waits for was never said, since the other server's own question was answered. */
static void a_question_about_the_next_call(void **state)
{
    struct loopback_conf conf = silent_net();
    (void)state;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "next", NULL, 3);
    struct tree tree = kit_tree(op, 2);
    uint32_t has = tree_child(&tree, tree.root, 0), lacks = tree_child(&tree, tree.root, 1);
    silence.release[tree.root][lacks] = true;
    kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    const struct kit_call *first = kit->calls, *next = kit_call(kit, op, has, (struct kit_ask){0});
    loopback_kill(kit->net, tree.root, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(kit->net, has), tree.root);
    loopback_run(kit->net, 300);
    for (const struct kit_call *call = first; call != NULL; call = call->next)
        assert_int_equal(call->status, 0);
    kit_check_agreement(kit);
    assert_int_equal(next->answers, 0);
    loopback_run(kit->net, ENGINE_ASK_MS);
    assert_int_equal(next->answers, 1);
    assert_int_equal(next->status, LOOPBACK_LOST);
    kit_end(kit);
}

/* A server that knows of a failure has called again, and is in doubt about that call. It tells the
 * failure to the servers that lack it, before anything that they could take for a word on their own
 * call. */
static void a_question_about_what_has_failed(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 4; n++) {
        struct loopback_conf conf = silent_net();
        conf.arity = 3;
        struct kit *kit = kit_new(&conf);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "failed", NULL, n);
        struct tree tree = kit_tree(op, 3);
        uint32_t has = tree_child(&tree, tree.root, 0), lacks = tree_child(&tree, tree.root, 1);
        silence.release[tree.root][lacks] = true;
        for (uint32_t slot = 0; slot < n; slot++)
            kit_call(kit, op, slot, (struct kit_ask){.status = slot == tree.root ? -77 : 0});
        loopback_run(kit->net, 300);
        const struct kit_call *first = call_of(kit, lacks);
        kit_call(kit, op, has, (struct kit_ask){0});
        loopback_kill(kit->net, tree.root, LONG_MS, LONG_MS);
        if (n > 3) /* has no word of this one yet */
            loopback_kill(kit->net, tree_child(&tree, tree.root, 2), LONG_MS, LONG_MS);
        engine_lost(loopback_engine(kit->net, lacks), tree.root);
        loopback_run(kit->net, 300);
        assert_int_equal(first->answers, 1);
        assert_int_equal(first->status, -77);
        kit_end(kit);
    }
}

/* Somebody does not answer, and is not known to be lost: the line names it. */
static void a_question_that_is_not_answered(void **state)
{
    struct loopback_conf conf = silent_net();
    (void)state;
    conf.stall = 3;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "silent", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint32_t first = tree_child(&tree, tree.root, 0), other = tree_child(&tree, tree.root, 1);
    char text[128];
    memset(silence.release[tree.root], 1, N);
    kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 300);
    loopback_kill(kit->net, tree.root, LONG_MS, LONG_MS);
    loopback_kill(kit->net, other, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(kit->net, first), tree.root);
    loopback_run(kit->net, 5000);
    snprintf(text, sizeof text, "no word yet of what the others know: c%02u\n", other);
    kit_assert_logged(kit, text);
    assert_int_equal(call_of(kit, first)->answers, 0);
    engine_lost(loopback_engine(kit->net, first), other);
    loopback_run(kit->net, 1000);
    assert_int_equal(call_of(kit, first)->answers, 1);
    assert_int_equal(call_of(kit, first)->status, LOOPBACK_LOST);
    kit_end(kit);
}

/* What makes no sense, or comes from those who have no say, ends nothing. */
static void a_bent_question(void **state)
{
    struct wire_out out = {0};
    struct kit *kit = silent_kit();
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "bent", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint32_t to = tree_child(&tree, tree.root, 0), from = tree_child(&tree, tree.root, 1);
    (void)state;
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != from)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    wire_put_block(&out, op->sig, op->siglen);
    wire_put_u8(&out, 1);
    for (int i = 0; i < 5; i++)
        wire_put_u64(&out, 0);
    wire_put_u32(&out, 1);
    wire_put_u32(&out, tree.root);
    wire_put_u32(&out, tree.root);
    struct engine *engine = loopback_engine(kit->net, to);
    for (size_t len = 0; len < out.len; len++) {
        unsigned char *exact = malloc(len + 1);
        memcpy(exact, out.data, len);
        engine_take(engine, from, FRAME_DOUBT, exact, len);
        engine_take(engine, from, FRAME_HAVE, exact, len);
        free(exact);
    }
    out.data[out.len - 1] = out.data[out.len - 5] = (unsigned char)to; /* itself */
    engine_take(engine, from, FRAME_DOUBT, out.data, out.len);
    out.data[out.len - 1] = out.data[out.len - 5] = N;
    engine_take(engine, from, FRAME_DOUBT, out.data, out.len);
    out.data[out.len - 1] = out.data[out.len - 5] = (unsigned char)tree.root;
    engine_take(engine, to, FRAME_DOUBT, out.data, out.len);
    engine_take(engine, N, FRAME_DOUBT, out.data, out.len);
    loopback_run(kit->net, 1000);
    kit_call(kit, op, from, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    kit_assert_all(kit, 0);
    wire_out_free(&out);
    kit_end(kit);
}

/* A success is on its way to a server, and the failure of the next operation behind it. The server
 * asks another server, which knows of both, for an operation of fewer participants with that id.
 * That is no later try: the other server must not answer by the failure, which would overtake the
 * success. */
static void another_set_of_that_id(void **state)
{
    uint32_t shown = 0;
    const struct loopback_conf conf = silent_net();
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        char id[8];
        uint8_t sides[N] = {0};
        struct kit *kit = kit_new(&conf);
        struct wire_out question = {0};
        snprintf(id, sizeof id, "%u", i);
        struct kit_op *all = kit_op(kit, COLL_FENCE, id, NULL, N);
        struct kit_op *some = kit_op(kit, COLL_FENCE, id, NULL, N - 2);
        struct tree tree = kit_tree(all, 2), fewer = kit_tree(some, 2);
        uint32_t late = fewer.root, asked = tree_child(&fewer, late, 0);
        if (late != tree.root && asked != tree.root) {
            const struct kit_call *call = NULL;
            for (uint32_t slot = 0; slot < N; slot++) {
                const struct kit_call *made =
                    slot == tree.root ? NULL : kit_call(kit, all, slot, (struct kit_ask){0});
                call = slot == late ? made : call;
            }
            loopback_run(kit->net, 1000);
            sides[late] = 1;
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 3000);
            kit_call(kit, all, tree.root, (struct kit_ask){0});
            kit_call(kit, all, tree.root, (struct kit_ask){.status = -77});
            loopback_run(kit->net, 200);
            loopback_partition(kit->net, sides, loopback_now(kit->net));
            wire_put_block(&question, some->sig, some->siglen);
            wire_put_u64(&question, 0);
            wire_put_u8(&question, 0);
            engine_take(loopback_engine(kit->net, asked), late, FRAME_WANTED, question.data,
                        question.len);
            loopback_run(kit->net, 10000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
            shown++;
        }
        wire_out_free(&question);
        kit_end(kit);
    }
    assert_in_range(shown, 1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_that_comes_too_late),
        cmocka_unit_test(a_success_is_of_one_call),
        cmocka_unit_test(a_question_about_the_next_call),
        cmocka_unit_test(a_question_about_what_has_failed),
        cmocka_unit_test(a_question_that_is_not_answered),
        cmocka_unit_test(a_bent_question),
        cmocka_unit_test(another_set_of_that_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
