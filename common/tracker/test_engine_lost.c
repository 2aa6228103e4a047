/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is lost: a parent, a server whose contribution is in, who decides, processes.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 7, LONG_MS = 3600000 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

static struct party_proc a(uint32_t rank)
{
    return (struct party_proc){'a', rank};
}

/* A network on which a lost server is noticed by those alone who send to it. */
static struct loopback *noticing;
static uint32_t gone;

static void notice(struct loopback *net, void *arg)
{
    uint32_t node = *(uint32_t *)arg;
    free(arg);
    if (!loopback_dead(net, node))
        engine_lost(loopback_engine(net, node), gone);
}

static bool to_the_lost(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
    uint32_t *who = noticing != NULL && to == gone ? malloc(sizeof *who) : NULL;
    if (who == NULL)
        return true;
    *who = from;
    loopback_at(noticing, loopback_now(noticing) + 10, notice, who);
    return false;
}

/* An interior server is gone once its whole subtree went up. Nobody waits for a contribution of
 * it: those below it find out as they ask, and all get one status, also who calls later. */
static void a_parent_that_is_gone_is_asked_for(void **state)
{
    struct loopback_conf conf = seven;
    (void)state;
    conf.filter = to_the_lost;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "parent", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint32_t late = tree_child(&tree, tree.root, 1);
    gone = tree_child(&tree, tree.root, 0);
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != late)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 2000);
    loopback_kill(kit->net, gone, LONG_MS, LONG_MS + 1);
    noticing = kit->net;
    loopback_run(kit->net, 2 * ENGINE_ASK_MS);
    kit_call(kit, op, late, (struct kit_ask){0});
    loopback_run(kit->net, 2 * ENGINE_ASK_MS);
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        assert_int_equal(call->answers, 1);
        if (call->slot != gone)
            assert_int_equal(call->status, LOOPBACK_LOST);
    }
    noticing = NULL;
    kit_end(kit);
}

/* A server between has not called: what is lost below it is learnt all the same. */
static void a_loss_below_an_idle_server(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "between", NULL, N);
        struct tree tree = kit_tree(op, 2);
        uint32_t leaf = tree_child(&tree, tree_child(&tree, tree.root, 0), 0);
        if (how == 0)
            loopback_local_status(kit->net, leaf, -88);
        else
            loopback_kill(kit->net, leaf, 0, 10);
        loopback_run(kit->net, 100);
        const struct kit_call *call = kit_call(kit, op, tree.root, (struct kit_ask){0});
        loopback_run(kit->net, 2 * ENGINE_ASK_MS);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, how == 0 ? -88 : LOOPBACK_LOST);
        kit_end(kit);
    }
}

/* A server was asked for what its participants may still call, and then one of them ends: it is not
 * asked again before it says so. What they have called since is another matter. */
static void whoever_is_awaited_ends(void **state)
{
    (void)state;
    for (int calls = 0; calls < 2; calls++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "awaited", NULL, N);
        struct tree tree = kit_tree(op, 2);
        uint32_t leaf = tree_child(&tree, tree_child(&tree, tree.root, 0), 0);
        const struct kit_call *call = kit_call(kit, op, tree.root, (struct kit_ask){0});
        loopback_run(kit->net, 2 * ENGINE_FLUSH_MS);
        assert_int_equal(call->answers, 0);
        for (uint32_t slot = 0; slot < N && calls; slot++)
            if (slot != tree.root)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 200);
        loopback_local_status(kit->net, leaf, -88);
        loopback_run(kit->net, 200);
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, calls ? 0 : -88);
        if (calls)
            assert_int_equal(kit_trackers(kit), 0);
        kit_end(kit);
    }
}

static bool is_told;

static bool no_word_outside(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    (void)arg, (void)from, (void)to;
    return is_told || len <= 24 || ((const unsigned char *)data)[24] != FRAME_OUTSIDE;
}

/* A server that was left out may not have heard so. It is told by those whom it asks for what it
 * waits for. */
static void one_that_does_not_know_that_it_is_out(void **state)
{
    const struct loopback_conf conf = {
        .nnodes = 4, .arity = 16, .agreed = true, .delay_max = 5, .filter = no_word_outside};
    (void)state;
    is_told = false;
    struct kit *kit = kit_new(&conf);
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        kit_call(kit, kit_op(kit, COLL_CONSTRUCT, id, NULL, 4), 3, (struct kit_ask){0});
    }
    loopback_run(kit->net, 100);
    loopback_part(kit->net, 2, 3, 0, 0);
    loopback_run(kit->net, 10000);
    assert_true(loopback_dead(kit->net, 3));
    uint32_t waits = 0;
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
        waits += call->answers == 0;
    assert_int_equal(waits, 20);
    is_told = true;
    loopback_run(kit->net, 2 * ENGINE_ASK_MS);
    kit_assert_all(kit, LOOPBACK_CLOSING);
    kit_end(kit);
}

static void not_too_late(void *arg, uint32_t node, uint32_t from)
{
    (void)arg, (void)node, (void)from;
    fail_msg("a server has left, and is heard afterwards");
}

/* What a leaver has said last may stay unread for a while at others, who count it as left only
 * when they have taken that. */
static void one_that_leaves_is_heard_first(void **state)
{
    struct loopback_conf conf = {.nnodes = 4,
                                 .arity = 16,
                                 .agreed = true,
                                 .delay_max = 5,
                                 .reorder = true,
                                 .unread = 300,
                                 .too_late = not_too_late};
    (void)state;
    for (conf.seed = 1; conf.seed < 400; conf.seed++) {
        struct kit *kit = kit_new(&conf);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "leaves", NULL, 4);
        for (uint32_t slot = 1; slot < 4; slot++)
            kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_leave(kit->net, 3, 0, 0);
        loopback_run(kit->net, 20000);
        kit_call(kit, op, 0, (struct kit_ask){0});
        loopback_run(kit->net, 20000);
        for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
            assert_true(call->answers == 1 && (call->slot == 3 || call->status != 0));
        kit_end(kit);
    }
}

/* Of a server that has left in order all get the status that it would have given, whether it would
 * have decided, or has contributed, or not. */
static void one_that_has_left_in_order(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < N; victim++)
        for (int kind = 0; kind < 2; kind++) {
            struct kit *kit = kit_new(&seven);
            struct kit_op *op =
                kit_op(kit, kind ? COLL_CONSTRUCT : COLL_FENCE, kind ? "left" : "", NULL, N);
            for (uint32_t slot = 0; slot < N; slot++)
                if (slot != victim)
                    kit_call(kit, op, slot, (struct kit_ask){0});
            loopback_run(kit->net, 1000);
            loopback_kill(kit->net, victim, LONG_MS, LONG_MS + 1);
            for (uint32_t node = 0; node < N; node++)
                if (node != victim)
                    engine_left(loopback_engine(kit->net, node), victim);
            loopback_run(kit->net, 1000);
            kit_assert_all(kit, LOOPBACK_LEFT);
            kit_end(kit);
        }
}

/* The same for a bootstrap's home, and for who has claimed members. */
static void who_decides_is_asked_for(void **state)
{
    struct loopback_conf conf = seven;
    char adds[16];
    (void)state;
    conf.filter = to_the_lost;
    struct party_room room = {.kit = kit_new(&conf)};
    gone = (uint32_t)(signature_hash("g", 1) % N);
    snprintf(adds, sizeof adds, "a%u a%u", (gone + 2) % N, (gone + 3) % N);
    struct party *parties[] = {party_boots(&room, (gone + 1) % N, 2, adds, 0),
                               party_boots(&room, (gone + 4) % N, 2, "", 0),
                               party_joins(&room, a((gone + 2) % N), false)};
    loopback_run(room.kit->net, 2000);
    loopback_kill(room.kit->net, gone, LONG_MS, LONG_MS + 1);
    noticing = room.kit->net;
    loopback_run(room.kit->net, 2 * ENGINE_ASK_MS);
    for (int i = 0; i < 3; i++)
        party_assert(parties[i], LOOPBACK_LOST);
    noticing = NULL;
    party_end(&room);
}

/* A server is lost whose contribution is in, while another one is awaited: nobody succeeds. */
static void a_loss_while_others_are_awaited(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < N; victim++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "split", NULL, N);
        uint32_t late = (victim + 3) % N;
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != late)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        loopback_kill(kit->net, victim, 0, 300);
        loopback_run(kit->net, 1000);
        kit_call(kit, op, late, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        for (const struct kit_call *call = kit->calls; call != NULL; call = call->next) {
            assert_int_equal(call->answers, 1);
            if (call->slot != victim)
                assert_int_equal(call->status, LOOPBACK_LOST);
        }
        kit_end(kit);
    }
}

/* A failure names who is lost, to all that get it, early or late. */
static struct procset expected;
static unsigned named;

static void check_gone(struct engine_call *call, const struct engine_result *result)
{
    (void)call;
    assert_int_not_equal(result->status, 0);
    assert_non_null(result->gone);
    assert_true(procset_equal(result->gone, &expected));
    named++;
}

static void who_is_lost_is_named(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < N; victim++)
        for (int server = 0; server < 2; server++) {
            struct kit *kit = kit_new(&seven);
            struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "gone", NULL, N);
            struct engine_call calls[N] = {0};
            expected = (struct procset){0};
            procset_add(&expected, "job", victim, victim);
            named = 0;
            for (uint32_t slot = 0; slot < N; slot++) {
                if (slot == victim)
                    continue;
                calls[slot] =
                    (struct engine_call){.sig = op->sig, .siglen = op->siglen, .done = check_gone};
                if (slot == (victim + 1) % N)
                    continue;
                engine_call(loopback_engine(kit->net, slot), &calls[slot]);
            }
            loopback_run(kit->net, 1000);
            if (server)
                loopback_kill(kit->net, victim, 0, 100);
            else
                loopback_local_status(kit->net, victim, -88);
            loopback_run(kit->net, 11000);
            assert_int_equal(named, N - 2);
            uint32_t late = (victim + 1) % N;
            engine_call(loopback_engine(kit->net, late), &calls[late]);
            loopback_run(kit->net, 1000);
            assert_int_equal(named, N - 1);
            procset_free(&expected);
            kit_end(kit);
        }
}

/* The decider is lost, and some servers know besides that a process has ended. The failure does not
 * name that process, because the other servers do not know it. */
static void what_only_some_know_is_not_named(void **state)
{
    (void)state;
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "gone", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint32_t ended = tree_child(&tree, tree_child(&tree, tree.root, 0), 0);
    struct engine_call calls[N] = {0};
    expected = (struct procset){0};
    procset_add(&expected, "job", tree.root, tree.root);
    named = 0;
    loopback_local_status(kit->net, ended, -88);
    loopback_kill(kit->net, tree.root, 300, 300);
    for (uint32_t slot = 0; slot < N; slot++) {
        if (slot == tree.root)
            continue;
        calls[slot] = (struct engine_call){.sig = op->sig,
                                           .siglen = op->siglen,
                                           .status = slot == ended ? -88 : 0,
                                           .done = check_gone};
        engine_call(loopback_engine(kit->net, slot), &calls[slot]);
    }
    loopback_run(kit->net, 1000);
    assert_int_equal(named, N - 1);
    procset_free(&expected);
    kit_end(kit);
}

/* A server leaves before it hears that the operation has failed: those below it get that failure
 * all the same. */
static void what_one_that_leaves_did_not_know(void **state)
{
    (void)state;
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "leave", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint32_t leaves = tree_child(&tree, tree.root, 0), below = tree_child(&tree, leaves, 0);
    uint8_t sides[N] = {0};
    const struct kit_call *call = kit_call(kit, op, below, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    sides[tree.root] = 1;
    loopback_partition(kit->net, sides, loopback_now(kit->net) + 1000);
    kit_call(kit, op, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    engine_close(loopback_engine(kit->net, leaves));
    loopback_run(kit->net, 2000);
    assert_int_equal(call->answers, 1);
    assert_int_equal(call->status, LOOPBACK_TIMEOUT);
    kit_end(kit);
}

/* A server below a lost one has not called, and does not know of the loss: nobody else would say
 * that its contribution has no way up any more. */
static void what_hangs_below_a_lost_server(void **state)
{
    struct loopback_conf conf = seven;
    (void)state;
    conf.arity = 1;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "below", NULL, N);
    struct tree tree = kit_tree(op, 1);
    uint32_t above = tree_child(&tree, tree.root, 0), lost = tree_child(&tree, above, 0);
    uint32_t below = tree_child(&tree, lost, 0);
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != below)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 1000); /* the lost one has said what it had */
    loopback_kill(kit->net, lost, LONG_MS, LONG_MS);
    engine_lost(loopback_engine(kit->net, above), lost);
    loopback_run(kit->net, 100);
    for (const struct kit_call *call = kit->calls; call != NULL; call = call->next)
        if (call->slot == above || call->slot == tree.root) {
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, LOOPBACK_LOST);
        }
    kit_end(kit);
}

/* Gives server @p to a failure, as if it had come round a lost server.
 * @param generation the root's; 0: the failure is not the root's word */
static void tell(struct kit *kit, const struct kit_op *op, uint32_t to, uint64_t generation,
                 int32_t status)
{
    struct wire_out out = {0};
    struct tracker_release failed = {.generation = generation, .result.status = status};
    const struct shared_bytes *bytes = release_bytes(&failed, op->sig, op->siglen);
    wire_put_u64(&out, 0); /* the number of no call */
    wire_put_raw(&out, bytes->data, bytes->len);
    engine_take(loopback_engine(kit->net, to), 0, FRAME_RELEASE, out.data, out.len);
    wire_out_free(&out);
    release_end(&failed);
}

/* A fence ends on server 1 for a loss above, without the root's word. A contribution to it, which
 * was on its way from server 2, is taken for one to the next fence. The root's word puts that
 * right, and its word on the next fence is server 2's answer to that one, and not to the one
 * before. */
static void a_word_on_the_call_after_the_loss(void **state)
{
    static const uint32_t chain[] = {TREE_NONE, 0, 1};
    struct loopback_conf conf = {
        .nnodes = 3, .arity = 2, .seed = 7, .delay_min = 10, .delay_max = 10, .parents = chain};
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "chain", NULL, 3);
    (void)state;
    kit_call(kit, op, 1, (struct kit_ask){0});
    const struct kit_call *above = kit_call(kit, op, 1, (struct kit_ask){0});
    kit_call(kit, op, 2, (struct kit_ask){0});
    const struct kit_call *below = kit_call(kit, op, 2, (struct kit_ask){0});
    tell(kit, op, 1, 0, LOOPBACK_LOST);
    loopback_run(kit->net, 50);
    assert_int_equal(kit->calls->next->status, LOOPBACK_LOST);
    assert_int_equal(above->answers + below->answers, 0);
    tell(kit, op, 1, 1, LOOPBACK_LOST);
    tell(kit, op, 1, 2, LOOPBACK_TIMEOUT);
    loopback_run(kit->net, 50);
    assert_int_equal(above->status, LOOPBACK_TIMEOUT);
    assert_int_equal(below->answers, 1);
    assert_int_equal(below->status, LOOPBACK_TIMEOUT);
    kit_end(kit);
}

/* On server 2 a call ends for a loss, while server 1 still waits with what server 2 has said of
 * it. So server 1 drops what server 2 says of the next operation, which server 3 has called. The
 * root is lost, and no server knows it yet.
 * @param timeout of server 1's call */
static struct kit *dropped_above(enum coll_kind kind, uint32_t timeout, struct kit_op **op,
                                 const struct kit_call **above, const struct kit_call **below)
{
    static const uint32_t chain[] = {TREE_NONE, 0, 1, 2};
    struct loopback_conf conf = {
        .nnodes = 4, .arity = 2, .seed = 7, .delay_min = 10, .delay_max = 10, .parents = chain};
    struct kit *kit = kit_new(&conf);
    *op = kit_op(kit, kind, "chain", NULL, 4);
    loopback_kill(kit->net, 0, LONG_MS, LONG_MS);
    for (uint32_t slot = 3; slot > 0; slot--)
        kit_call(kit, *op, slot, (struct kit_ask){.timeout = slot == 1 ? timeout : 0});
    *above = kit->calls;
    loopback_run(kit->net, 50);
    tell(kit, *op, 2, 0, LOOPBACK_LOST);
    loopback_run(kit->net, 50);
    *below = kit_call(kit, *op, 3, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    assert_int_equal((*above)->answers + (*below)->answers, 0);
    return kit;
}

/* Server 1 knows the number of server 2's first call alone. Its word on the lost root still ends
 * what stands on server 2, where nobody has called. */
static void a_word_on_the_call_before_the_loss(void **state)
{
    static const enum coll_kind kinds[] = {COLL_FENCE, COLL_DESTRUCT};
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct kit_op *op;
        const struct kit_call *above, *below;
        struct kit *kit = dropped_above(kinds[which], 0, &op, &above, &below);
        for (uint32_t node = 3; node > 0; node--)
            engine_lost(loopback_engine(kit->net, node), 0);
        loopback_run(kit->net, 100);
        assert_int_equal(above->status, LOOPBACK_LOST);
        assert_int_equal(below->status, LOOPBACK_LOST);
        const struct kit_call *late = kit_call(kit, op, 2, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        assert_int_equal(late->answers, 1);
        assert_int_equal(late->status, LOOPBACK_LOST);
        kit_end(kit);
    }
}

/* Server 1 gives up at its deadline. What it has dropped is said to it once more, so it is server 1
 * that ends the next operation when it learns of the loss. */
static void what_was_dropped_is_said_again(void **state)
{
    (void)state;
    struct kit_op *op;
    const struct kit_call *above, *below;
    struct kit *kit = dropped_above(COLL_FENCE, 2, &op, &above, &below);
    loopback_run(kit->net, 8000);
    assert_int_equal(above->status, LOOPBACK_TIMEOUT);
    assert_int_equal(below->answers, 0);
    engine_lost(loopback_engine(kit->net, 1), 0);
    loopback_run(kit->net, 100);
    assert_int_equal(below->status, LOOPBACK_LOST);
    kit_end(kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parent_that_is_gone_is_asked_for),
        cmocka_unit_test(a_loss_below_an_idle_server),
        cmocka_unit_test(whoever_is_awaited_ends),
        cmocka_unit_test(one_that_leaves_is_heard_first),
        cmocka_unit_test(one_that_does_not_know_that_it_is_out),
        cmocka_unit_test(one_that_has_left_in_order),
        cmocka_unit_test(who_decides_is_asked_for),
        cmocka_unit_test(a_loss_while_others_are_awaited),
        cmocka_unit_test(who_is_lost_is_named),
        cmocka_unit_test(what_only_some_know_is_not_named),
        cmocka_unit_test(what_one_that_leaves_did_not_know),
        cmocka_unit_test(what_hangs_below_a_lost_server),
        cmocka_unit_test(a_word_on_the_call_after_the_loss),
        cmocka_unit_test(a_word_on_the_call_before_the_loss),
        cmocka_unit_test(what_was_dropped_is_said_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
