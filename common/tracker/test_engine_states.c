/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the table of states, and of what arrives early, twice or late.
 */
#include "common/tracker/test_kit.h"

#include "common/util/test_cmocka.h"

#include <string.h>

static const struct loopback_conf three = {.nnodes = 3, .arity = 2, .seed = 1, .delay_max = 5};

/* The three servers' slots by their place in the tree. */
struct spots {
    uint32_t root, child[2];
};

static struct spots spots_of(const struct kit_op *op)
{
    struct tree tree = kit_tree(op, 2);
    return (struct spots){tree.root,
                          {tree_child(&tree, tree.root, 0), tree_child(&tree, tree.root, 1)}};
}

static void every_row_of_the_table(void **state)
{
    enum { NO = -1 };
    static const int expected[TRACKER_STATES][TRACKER_EVENTS] = {
        {TRACKER_GATHER, TRACKER_EARLY, NO, NO, NO, NO},
        {TRACKER_GATHER, TRACKER_EARLY, NO, TRACKER_IDLE, NO, TRACKER_DOUBT},
        {NO, TRACKER_GATHER, TRACKER_SENT, TRACKER_IDLE, TRACKER_GATHER, TRACKER_DOUBT},
        {NO, NO, NO, TRACKER_IDLE, TRACKER_GATHER, TRACKER_DOUBT},
        {TRACKER_DOUBT, NO, NO, TRACKER_IDLE, TRACKER_GATHER, TRACKER_DOUBT},
    };
    struct kit *kit = kit_new(&three);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "table", NULL, 3);
    struct engine *engine = loopback_engine(kit->net, 0);
    struct tracker *t = tracker_get(engine, op->sig, op->siglen);
    (void)state;
    for (int from = 0; from < TRACKER_STATES; from++)
        for (int event = 0; event < TRACKER_EVENTS; event++) {
            kit->loglen = 0;
            kit->log[0] = '\0';
            t->state = (enum tracker_state)from;
            bool moved = tracker_move(engine, t, (enum tracker_event)event);
            assert_int_equal(moved, expected[from][event] != NO);
            assert_int_equal(t->state, moved ? expected[from][event] : from);
            if (!moved)
                kit_assert_logged(kit, "group \"table\" construct #");
            else
                assert_string_equal(kit->log, "");
        }
    t->state = TRACKER_IDLE;
    tracker_tidy(engine, t);
    assert_int_equal(engine->count, 0);
    kit_end(kit);
}

static void a_contribution_before_the_call(void **state)
{
    struct kit *kit = kit_new(&three);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 3);
    struct spots p = spots_of(op);
    (void)state;
    kit_call(kit, op, p.child[0], (struct kit_ask){0});
    kit_call(kit, op, p.child[1], (struct kit_ask){0});
    loopback_run(kit->net, 100);
    assert_int_equal(loopback_engine(kit->net, p.root)->count, 1);
    assert_int_equal(kit->calls->answers, 0);
    kit_call(kit, op, p.root, (struct kit_ask){0});
    assert_int_equal(kit->calls->answers, 1);
    loopback_run(kit->net, 100);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

/* Keeps the last frame of one kind. */
struct capture {
    enum frame_type type;
    uint32_t from, to;
    unsigned char data[4096];
    size_t len;
    unsigned count;
};

static bool capture(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    enum { HEADER = 4 + 8 + 4 + 8 };
    struct capture *c = arg;
    const unsigned char *bytes = data;
    if (bytes[HEADER] != c->type)
        return true;
    c->count++;
    c->from = from;
    c->to = to;
    c->len = len - HEADER - 1;
    memcpy(c->data, bytes + HEADER + 1, c->len);
    return true;
}

static struct loopback_conf capturing(struct capture *c)
{
    struct loopback_conf conf = three;
    conf.arg = c;
    conf.filter = capture;
    return conf;
}

static void a_contribution_that_comes_twice(void **state)
{
    struct capture c = {.type = FRAME_CONTRIB};
    struct loopback_conf conf = capturing(&c);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 3);
    struct spots p = spots_of(op);
    (void)state;
    kit_call(kit, op, p.root, (struct kit_ask){0});
    kit_call(kit, op, p.child[0], (struct kit_ask){0});
    loopback_run(kit->net, 100);
    /* counted, three contributions would be here; by slot there are two */
    engine_take(loopback_engine(kit->net, c.to), c.from, FRAME_CONTRIB, c.data, c.len);
    engine_take(loopback_engine(kit->net, c.to), c.from, FRAME_CONTRIB, c.data, c.len);
    loopback_run(kit->net, 100);
    assert_int_equal(kit->calls->answers, 0);
    kit_call(kit, op, p.child[1], (struct kit_ask){0});
    loopback_run(kit->net, 100);
    kit_assert_all(kit, 0);
    kit_end(kit);
}

static void a_contribution_after_the_subtree_is_complete(void **state)
{
    struct capture c = {.type = FRAME_CONTRIB};
    struct loopback_conf conf = capturing(&c);
    conf.nnodes = 7;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 7);
    struct tree tree = kit_tree(op, 2);
    uint32_t interior = tree_child(&tree, tree.root, 0);
    (void)state;
    kit_call(kit, op, tree_child(&tree, interior, 0), (struct kit_ask){0});
    struct capture first = c;
    kit_call(kit, op, tree_child(&tree, interior, 1), (struct kit_ask){0});
    kit_call(kit, op, interior, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    engine_take(loopback_engine(kit->net, first.to), first.from, FRAME_CONTRIB, first.data,
                first.len);
    for (uint32_t slot = 0; slot < 7; slot++)
        if (op->made[slot] == 0)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 100);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void a_call_after_the_operation_failed(void **state)
{
    struct kit *kit = kit_new(&three);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 3);
    struct spots p = spots_of(op);
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) { /* a failure of its own waits for all */
        int32_t status = at_once ? LOOPBACK_TIMEOUT : -77;
        struct kit_call *fails = kit_call(kit, op, p.child[0], (struct kit_ask){.status = status});
        loopback_run(kit->net, 100);
        assert_int_equal(fails->answers, at_once);
        struct kit_call *others[] = {kit_call(kit, op, p.child[1], (struct kit_ask){0}),
                                     kit_call(kit, op, p.root, (struct kit_ask){0})};
        loopback_run(kit->net, 100);
        assert_int_equal(fails->status, status);
        for (int i = 0; i < 2; i++)
            assert_int_equal(others[i]->answers, !at_once);
        if (at_once) { /* they are of the next one */
            kit_call(kit, op, p.child[0], (struct kit_ask){0});
            loopback_run(kit->net, 100);
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(others[i]->status, at_once ? 0 : -77);
    }
    loopback_run(kit->net, ENGINE_REMEMBER_MS);
    assert_int_equal(kit_trackers(kit), 0);
    kit_end(kit);
}

static void a_straggler_opens_nothing(void **state)
{
    struct capture c = {.type = FRAME_CONTRIB};
    struct loopback_conf conf = capturing(&c);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, 3);
    struct spots p = spots_of(op);
    (void)state;
    kit_call(kit, op, p.child[0], (struct kit_ask){0});
    assert_int_equal(c.count, 1);
    struct capture late = c; /* it is under way while the root fails */
    kit_call(kit, op, p.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
    loopback_run(kit->net, 100);
    kit_assert_all(kit, LOOPBACK_TIMEOUT);
    /* the contribution of the failed instance comes now, and again when the next one stands */
    engine_take(loopback_engine(kit->net, late.to), late.from, FRAME_CONTRIB, late.data, late.len);
    kit_call(kit, op, p.root, (struct kit_ask){0});
    op->made[p.child[1]]++; /* it has missed the failed one */
    kit_call(kit, op, p.child[1], (struct kit_ask){0});
    loopback_run(kit->net, 100);
    engine_take(loopback_engine(kit->net, late.to), late.from, FRAME_CONTRIB, late.data, late.len);
    loopback_run(kit->net, 100);
    assert_int_equal(kit->calls->answers, 0);
    kit_call(kit, op, p.child[0], (struct kit_ask){0});
    loopback_run(kit->net, 100);
    assert_int_equal(kit->calls->status, 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(kit->calls->seen[i], 1);
    kit_check_agreement(kit);
    kit_end(kit);
}

static void a_call_whose_participants_are_unknown(void **state)
{
    const uint32_t nodes[] = {0, 9}, elsewhere[] = {1, 2};
    struct kit *kit = kit_new(&three);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", nodes, 2);
    (void)state;
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_assert_all(kit, LOOPBACK_INVALID);
    /* a server that hosts none of the participants */
    op = kit_op(kit, COLL_FENCE, "", elsewhere, 2);
    op->nodes[0] = 0;
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_assert_all(kit, LOOPBACK_INVALID);
    assert_int_equal(loopback_engine(kit->net, 0)->count, 0);
    kit_end(kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table),
        cmocka_unit_test(a_contribution_before_the_call),
        cmocka_unit_test(a_contribution_that_comes_twice),
        cmocka_unit_test(a_contribution_after_the_subtree_is_complete),
        cmocka_unit_test(a_call_after_the_operation_failed),
        cmocka_unit_test(a_straggler_opens_nothing),
        cmocka_unit_test(a_call_whose_participants_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
