/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of tries.c: operations that are tried again by those that are left, of which not all know
 * the same.
 */
#include "common/tracker/membership/private.h"
#include "common/tracker/test_party.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

enum { N = 7, LEFT = N - 2, LONG_MS = 3600000 };

static const struct loopback_conf seven = {
    .nnodes = N, .arity = 2, .seed = 7, .delay_max = 20, .reorder = true};

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
        struct procset gone = kit_servers(1u << tree.root);
        if (tree_child(&tree, other, 0) != TREE_NONE) {
            sides[tree.root] = sides[told] = 1;
            struct kit_call *call = kit_call(kit, first, other, (struct kit_ask){0});
            loopback_run(kit->net, 100);
            loopback_partition(kit->net, sides, loopback_now(kit->net) + 1000);
            kit_call(kit, first, told, (struct kit_ask){0});
            kit_call(kit, first, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
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
            assert_int_equal(later->status, LOOPBACK_TIMEOUT);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 40);
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
        struct procset gone = kit_servers(0x60);
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
            kit_call(kit, more, next.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
            loopback_run(kit->net, 2000);
            assert_int_equal(call->answers, 1);
            assert_int_equal(call->status, 0);
            shown++;
        }
        kit_end(kit);
        procset_free(&gone);
    }
    assert_in_range(shown, 1, 80);
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
        kit_call(kit, op, tree.root, (struct kit_ask){.status = LOOPBACK_TIMEOUT});
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

/* A failure of a construct, which server 1 has decided. */
struct failure {
    const char *leaders, *gone;
    uint64_t generation;
    bool other; /* and not of an earlier try: after a success of generation 6 with the leader a0,
                   without a1 and a2 */
};

static struct wire_out leaders_sig(const char *leaders)
{
    struct wire_out sig = {0};
    struct procset set = party_set(leaders);
    signature_write(&sig, COLL_CONSTRUCT, "g", &set);
    procset_free(&set);
    return sig;
}

/* Server 1 claims a3 and b3 from their server. */
static void give_claim(struct engine *engine, const struct failure *failure)
{
    struct wire_out out = {0}, sig = leaders_sig(failure->leaders);
    struct procset added = party_set("a3 b3");
    wire_put_u64(&out, 4711);
    wire_put_str(&out, "g");
    procset_write(&added, &out);
    wire_put_block(&out, sig.data, sig.len);
    engine_take(engine, 1, FRAME_CLAIM, out.data, out.len);
    wire_out_free(&out);
    wire_out_free(&sig);
    procset_free(&added);
}

/* Server 1 tells their server of the failure. */
static void give_failure(struct engine *engine, const struct failure *failure)
{
    struct wire_out out = {0}, sig = leaders_sig(failure->leaders);
    struct procset added = party_set("a3 b3"), gone = party_set(failure->gone);
    struct tracker_release release = {
        .generation = failure->generation,
        .op = 4711,
        .added = &added,
        .result = {.status = -5, .gone = gone.nparts > 0 ? &gone : NULL},
    };
    const struct shared_bytes *bytes = release_bytes(&release, sig.data, sig.len);
    wire_put_u32(&out, 0);
    wire_put_raw(&out, bytes->data, bytes->len);
    release_end(&release);
    engine_take(engine, 1, FRAME_OUTCOME, out.data, out.len);
    wire_out_free(&out);
    wire_out_free(&sig);
    procset_free(&added);
    procset_free(&gone);
}

static struct party *leads(struct party_room *room, const struct procset *gone)
{
    struct procset set = party_set("a0"), added = party_set("a3 b3");
    struct party *party = party_collective(room, "g", (struct party_proc){'a', 0}, &set,
                                           (struct party_ask){.added = &added, .gone = gone});
    procset_free(&set);
    procset_free(&added);
    loopback_run(room->kit->net, 1000);
    return party;
}

/* A later try has taken the calls of its members when the failure of an earlier one is heard on
 * their server, or has succeeded by then, or its members have even called again, in the second case
 * with the next run of the lost processes' job.
 * @param when one of these */
static void fail_earlier(const struct failure *failure, int when, bool nameless)
{
    static const struct party_proc a3 = {'a', 3}, b3 = {'b', 3};
    struct party_room room = {.kit = kit_new(&seven)};
    struct engine *engine = loopback_engine(room.kit->net, 3);
    struct procset gone = party_set("a1 a2");
    engine_hear(loopback_engine(room.kit->net, 0), 5);
    struct party *leader = leads(&room, &gone);
    struct party *one = party_joins(&room, a3, nameless), *other = party_joins(&room, b3, nameless);
    if (when == 0)
        give_failure(engine, failure);
    loopback_run(room.kit->net, 1000);
    party_assert(leader, 0);
    party_assert(one, 0);
    party_assert(other, 0);
    if (when == 1)
        give_failure(engine, failure);
    struct party *next[] = {party_joins(&room, a3, nameless), party_joins(&room, b3, nameless)};
    if (when == 3)
        engine_nspace_ended(engine, "a");
    if (when >= 2) {
        give_claim(engine, failure);
        give_failure(engine, failure);
    }
    bool fails = when == 3 || (when == 2 && failure->other);
    for (int i = 0; i < 2; i++)
        assert_int_equal(next[i]->answers, fails);
    if (!fails) {
        party_assert(leads(&room, &gone), 0);
        const struct claim *claim = TAILQ_FIRST(&engine->membership->claims);
        assert_true(claim->state == CLAIM_OVER && TAILQ_NEXT(claim, all) == NULL);
    }
    for (int i = 0; i < 2; i++)
        party_assert(next[i], fails ? -5 : 0);
    party_end(&room);
    procset_free(&gone);
}

/* A failure of an earlier try is of no call that a member of the try that has succeeded makes then.
 * That of the next operation is, that of other leaders, and one that the success has not survived.
 */
static void a_try_that_fails_behind_a_success(void **state)
{
    static const struct failure failures[] = {
        {"a0 a1", "a1", 5, false}, {"a0", "a2", 5, false},   {"a0 a1 a2", "a1 a2", 4, false},
        {"a0 a1", "a1", 7, true},  {"a0 a1", "a4", 5, true}, {"a0 a1", "", 5, true},
        {"a0 a4", "a1", 5, true},  {"a1", "a1", 5, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        for (int when = 0; when < 4; when++)
            for (int nameless = 0; nameless < 2; nameless++)
                fail_earlier(&failures[i], when, nameless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_that_was_given_up),
        cmocka_unit_test(a_success_that_comes_later),
        cmocka_unit_test(a_failure_by_another_way),
        cmocka_unit_test(a_try_that_fails_behind_a_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
