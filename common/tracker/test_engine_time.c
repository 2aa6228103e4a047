/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of deadlines, stall reports, forgetting and closing.
 */
#include "common/tracker/recovery/recovery.h"
#include "common/tracker/test_kit.h"
#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

enum { N = 7, LATENCY_MS = 1000 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

static void a_timeout_is_everybodys(void **state)
{
    (void)state;
    for (uint32_t absent = 0; absent < N; absent++) {
        char who[128];
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "ocean", NULL, N);
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != absent)
                kit_call(kit, op, slot, (struct kit_ask){.timeout = 30});
        loopback_run(kit->net, 29000);
        assert_int_equal(kit->calls->answers, 0);
        loopback_run(kit->net, 1000 + LATENCY_MS);
        kit_assert_all(kit, LOOPBACK_TIMEOUT);
        snprintf(who, sizeof who,
                 "timed out after 30 s: group \"ocean\" construct: 1 of 7 nodes missing: rank %u",
                 absent);
        kit_assert_logged(kit, who);
        struct kit_call *before = kit->calls,
                        *late = kit_call(kit, op, absent, (struct kit_ask){0});
        for (uint32_t slot = 0; slot < N; slot++)
            if (slot != absent)
                kit_call(kit, op, slot, (struct kit_ask){0});
        loopback_run(kit->net, 1000);
        for (const struct kit_call *call = kit->calls; call != before; call = call->next)
            assert_int_equal(call->answers, 1);
        assert_int_equal(late->status, 0);
        loopback_run(kit->net, 2 * ENGINE_REMEMBER_MS);
        assert_int_equal(kit_trackers(kit), 0);
        kit_end(kit);
    }
}

static void the_shortest_timeout_counts(void **state)
{
    (void)state;
    for (uint32_t shortest = 0; shortest < N - 1; shortest++) {
        struct kit *kit = kit_new(&seven);
        struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
        for (uint32_t slot = 0; slot < N - 1; slot++)
            kit_call(kit, op, slot,
                     (struct kit_ask){.timeout = slot == shortest ? 5
                                                 : slot % 2       ? 60
                                                                  : 0});
        uint64_t start = loopback_now(kit->net);
        loopback_run(kit->net, 200000);
        kit_assert_all(kit, LOOPBACK_TIMEOUT);
        for (struct kit_call *call = kit->calls; call != NULL; call = call->next) {
            assert_true(call->answered_at >= start + 5000);
            assert_true(call->answered_at <= start + 5000 + LATENCY_MS);
        }
        kit_end(kit);
    }
}

/* A shorter timeout that starts later must not move the deadline back. */
static void the_earliest_deadline_counts(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    uint64_t start = loopback_now(kit->net);
    (void)state;
    kit_call(kit, op, 0, (struct kit_ask){.timeout = 10});
    loopback_run(kit->net, 8000);
    for (uint32_t slot = 1; slot < N - 1; slot++)
        kit_call(kit, op, slot, (struct kit_ask){.timeout = 9});
    loopback_run(kit->net, 60000);
    kit_assert_all(kit, LOOPBACK_TIMEOUT);
    assert_in_range(kit->calls->answered_at, start + 10000, start + 10000 + LATENCY_MS);
    kit_end(kit);
}

/* The way up is long and waits at every server: the deadline is still that of the caller. */
static void a_deadline_is_one_moment_for_all(void **state)
{
    enum { DEEP = 100 };
    struct loopback_conf conf = seven;
    conf.nnodes = DEEP;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, DEEP);
    struct tree tree = kit_tree(op, 2);
    uint32_t leaf = tree.root;
    (void)state;
    while (tree_child(&tree, leaf, 0) != TREE_NONE)
        leaf = tree_child(&tree, leaf, 0);
    uint64_t start = loopback_now(kit->net);
    kit_call(kit, op, leaf, (struct kit_ask){.timeout = 6});
    for (uint32_t slot = 0; slot < DEEP; slot++)
        if (slot != leaf && slot % 5 != 0)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 60000);
    kit_assert_all(kit, LOOPBACK_TIMEOUT);
    assert_in_range(kit->calls->answered_at, start + 6000, start + 6000 + LATENCY_MS);
    kit_end(kit);
}

/* Servers cut off from the root end by themselves; what the root says later harms nobody. */
static void the_roots_word_does_not_come(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint8_t sides[N] = {0};
    uint32_t absent = tree_child(&tree, tree.root, 1);
    (void)state;
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != absent)
            kit_call(kit, op, slot, (struct kit_ask){.timeout = 5});
    loopback_run(kit->net, 3000);
    sides[tree.root] = 1;
    loopback_partition(kit->net, sides, loopback_now(kit->net) + 20000);
    loopback_run(kit->net, 5000 + ENGINE_GRACE_MS);
    kit_assert_all(kit, LOOPBACK_TIMEOUT);
    kit_assert_logged(kit, "no word of node");
    /* Calls of the next operation stand already when the root's word on this one comes. */
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != absent)
            kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 20000);
    struct kit_call *first = kit_call(kit, op, absent, (struct kit_ask){0}); /* of the next one */
    loopback_run(kit->net, 5000);
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next) {
        bool failed = call->instance == 0 && call != first;
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, failed ? LOOPBACK_TIMEOUT : 0);
    }
    kit_end(kit);
}

/* An earlier failure, said once more round a lost server, is not the word on what a server has
 * ended by itself: that comes later, and answers no other call. */
static void an_earlier_word_is_said_again(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    struct tree tree = kit_tree(op, 2);
    uint8_t sides[N] = {0};
    uint32_t below = tree_child(&tree, tree.root, 1);
    struct tracker_release earlier = {.result.status = -77};
    struct wire_out out = {0};
    (void)state;
    for (uint32_t slot = 0; slot < N; slot++)
        kit_call(kit, op, slot, (struct kit_ask){.status = slot == below ? -77 : 0});
    loopback_run(kit->net, 1000);
    kit_assert_all(kit, -77);
    sides[below] = 1;
    loopback_partition(kit->net, sides, loopback_now(kit->net) + 20000);
    kit_call(kit, op, tree.root, (struct kit_ask){.timeout = 1});
    struct kit_call *alone = kit_call(kit, op, below, (struct kit_ask){.timeout = 1});
    loopback_run(kit->net, 10000);
    assert_int_equal(alone->answers, 1);
    struct engine *engine = loopback_engine(kit->net, below);
    const struct tracker *t = tracker_find(engine, op->sig, op->siglen);
    assert_true(t->failure.given_up);
    earlier.generation = t->failure.generation;
    const struct shared_bytes *bytes = release_bytes(&earlier, op->sig, op->siglen);
    wire_put_u64(&out, 0); /* number */
    wire_put_raw(&out, bytes->data, bytes->len);
    engine_take(engine, tree.root, FRAME_RELEASE, out.data, out.len);
    release_end(&earlier);
    wire_out_free(&out);
    loopback_run(kit->net, 20000);
    struct kit_call *before = kit->calls;
    kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    for (struct kit_call *call = kit->calls; call != before; call = call->next) {
        assert_int_equal(call->answers, 1);
        assert_int_equal(call->status, 0);
    }
    kit_end(kit);
}

static void a_stall_is_reported_and_ends_nothing(void **state)
{
    struct loopback_conf conf = seven;
    conf.stall = 3;
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "slow", NULL, N);
    (void)state;
    for (uint32_t slot = 2; slot < N; slot++)
        kit_call(kit, op, slot, (struct kit_ask){0});
    loopback_run(kit->net, 2500);
    assert_string_equal(kit->log, "");
    loopback_run(kit->net, 6000);
    kit_assert_logged(kit, "waiting for 3 s: group \"slow\" construct: 2 of 7 nodes missing: "
                           "rank 0, rank 1");
    kit_assert_logged(kit, "waiting for 6 s: ");
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_call(kit, op, 1, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    kit_assert_all(kit, 0);
    for (uint32_t i = 0; i < N; i++)
        assert_true(loopback_wait(kit->net, i) > 500000); /* it only forgets */
    kit_end(kit);
}

/* What a test of the log and of engine_walk() saw. */
static struct {
    char lines[4096];
    unsigned views;
    uint64_t age, in_state;
    char state[16];
    uint32_t nmissing, missing;
} seen;

static void see_line(void *arg, enum log_level level, const char *text)
{
    size_t len = strlen(seen.lines);
    (void)arg;
    (void)level;
    snprintf(seen.lines + len, sizeof seen.lines - len, "%s\n", text);
}

static void see_view(void *arg, const struct engine_view *view)
{
    (void)arg;
    seen.views++;
    seen.age = view->age;
    seen.in_state = view->in_state;
    snprintf(seen.state, sizeof seen.state, "%s", view->state);
    seen.nmissing = view->nmissing;
    seen.missing = view->nmissing > 0 ? view->missing[0] : UINT32_MAX;
}

/* The root hears of an operation 2 s before its own call. */
static void the_time_in_a_state(void **state)
{
    const uint32_t pair[] = {0, 1};
    struct loopback_conf conf = {.nnodes = 2, .arity = 2, .seed = 1};
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_CONSTRUCT, "pair", pair, 2);
    uint32_t root = kit_tree(op, 2).root;
    struct engine *engine = loopback_engine(kit->net, root);
    char line[256];
    (void)state;
    memset(&seen, 0, sizeof seen);
    log_open(see_line, NULL, LOG_LEVEL_DEBUG, "4711.0 c07");
    kit_call(kit, op, !root, (struct kit_ask){0});
    loopback_run(kit->net, 2000);
    engine_walk(engine, see_view, NULL);
    assert_int_equal(seen.views, 1);
    assert_string_equal(seen.state, "early");
    assert_int_equal(seen.nmissing, 1);
    assert_int_equal(seen.missing, root);
    assert_true(seen.age == seen.in_state && seen.age <= 2000 && seen.age > 1900);
    uint64_t early = seen.in_state;
    kit_call(kit, op, root, (struct kit_ask){0});
    snprintf(line, sizeof line,
             "4711.0 c07: tracker: group \"pair\" construct #%016llx after %llu ms: call: early "
             "-> gather\n",
             (unsigned long long)signature_hash(op->sig, op->siglen), (unsigned long long)early);
    assert_non_null(strstr(seen.lines, line));
    loopback_run(kit->net, LATENCY_MS);
    engine_walk(engine, see_view, NULL);
    assert_int_equal(seen.views, 1); /* it is over */
    assert_int_equal(engine_counts(engine).done[COLL_CONSTRUCT], 1);
    assert_int_equal(engine_counts(engine).failed[COLL_CONSTRUCT], 0);
    kit_end(kit);
}

static void closing_answers_all(void **state)
{
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    (void)state;
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_call(kit, op, 0, (struct kit_ask){0});
    engine_close(loopback_engine(kit->net, 0));
    kit_assert_all(kit, LOOPBACK_CLOSING);
    assert_int_equal(loopback_engine(kit->net, 0)->count, 0);
    kit_call(kit, op, 0, (struct kit_ask){0});
    kit_assert_all(kit, LOOPBACK_CLOSING);
    kit_call(kit, op, 1, (struct kit_ask){.timeout = 1});
    loopback_run(kit->net, 10000); /* its frames are dropped, and nothing breaks */
    assert_int_equal(loopback_engine(kit->net, 0)->count, 0);
    kit_end(kit);
}

/* The decision needs four seconds down to the end of a long chain, as has its contribution up. The
 * server there, whose deadline is the only one, awaits it for longer than five seconds. */
static void a_long_way_from_the_root(void **state)
{
    enum { LONG = 40 };
    uint32_t chain[LONG];
    (void)state;
    for (uint32_t i = 0; i < LONG; i++)
        chain[i] = i == 0 ? TREE_NONE : i - 1;
    struct loopback_conf conf = {
        .nnodes = LONG, .arity = 2, .delay_min = 100, .delay_max = 100, .parents = chain};
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, LONG);
    for (uint32_t slot = 0; slot < LONG; slot++)
        kit_call(kit, op, slot, (struct kit_ask){.timeout = slot == LONG - 1});
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    kit_end(kit);
}

static void close_engine(struct kit_call *call)
{
    engine_close(loopback_engine(call->kit->net, call->op->nodes[call->slot]));
}

static void closing_from_an_answer(void **state)
{
    const uint32_t alone[] = {0};
    struct kit *kit = kit_new(&seven);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, N);
    (void)state;
    kit_call(kit, op, 0, (struct kit_ask){.status = -9, .then = close_engine});
    kit_call(kit, op, 0, (struct kit_ask){0}); /* queued, unless 0 is the root */
    for (uint32_t slot = 1; slot < N; slot++)
        kit_call(kit, op, slot, (struct kit_ask){0});
    kit_call(kit, kit_op(kit, COLL_FENCE, "", alone, 1), 0, (struct kit_ask){0});
    loopback_run(kit->net, 1000);
    for (struct kit_call *call = kit->calls; call != NULL; call = call->next)
        assert_int_equal(call->answers, 1);
    kit_end(kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_is_everybodys),
        cmocka_unit_test(an_earlier_word_is_said_again),
        cmocka_unit_test(the_shortest_timeout_counts),
        cmocka_unit_test(the_earliest_deadline_counts),
        cmocka_unit_test(a_deadline_is_one_moment_for_all),
        cmocka_unit_test(the_roots_word_does_not_come),
        cmocka_unit_test(a_long_way_from_the_root),
        cmocka_unit_test(a_stall_is_reported_and_ends_nothing),
        cmocka_unit_test(the_time_in_a_state),
        cmocka_unit_test(closing_answers_all),
        cmocka_unit_test(closing_from_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
