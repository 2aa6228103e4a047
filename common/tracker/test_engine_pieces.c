/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of large results: a fence's data in pieces, the root's word by itself; and what happens
 * when one of both does not come.
 *
 * Eight servers, all but the root below it: the root hands pieces to its first child, that one to
 * the second and the third, the second to the fourth and the fifth, and so on.
 */
#include "common/tracker/rollup/rollup.h"
#include "common/tracker/test_kit.h"
#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

enum { N = 8, LINK_HEAD = 4 + 8 + 4 + 8, STATUS = -7, NOBODY = 0x7fffffff };

/* Pieces that are kept from a server; and how many went from each server to each. */
static struct world {
    struct kit *kit;
    struct kit_op *op;
    struct tree tree;
    uint32_t child[N - 1]; /* of the root, in order */
    uint32_t victim;       /* pieces to it vanish; NOBODY: to none */
    uint32_t nkept;
    struct wire_out kept[N];
    uint32_t sent[100][100];
} world;

static bool filter(void *arg, uint32_t from, uint32_t to, const void *data, size_t len)
{
    const unsigned char *frame = (const unsigned char *)data + LINK_HEAD;
    (void)arg;
    if (len <= LINK_HEAD || *frame != FRAME_PIECE)
        return true;
    world.sent[from][to]++;
    if (to != world.victim)
        return true;
    if (world.nkept < N)
        wire_put_raw(&world.kept[world.nkept++], frame + 1, len - LINK_HEAD - 1);
    return false;
}

static struct loopback_conf network(uint32_t nnodes, uint32_t arity)
{
    return (struct loopback_conf){.nnodes = nnodes,
                                  .arity = arity,
                                  .seed = nnodes * 100ull + arity,
                                  .delay_max = 50,
                                  .reorder = true,
                                  .duplicate = 200,
                                  .large = 1,
                                  .piece = 100,
                                  .filter = filter};
}

static int begin(void **state)
{
    struct loopback_conf conf = network(N, 16);
    (void)state;
    conf.duplicate = 0;
    world = (struct world){.victim = NOBODY};
    world.kit = kit_new(&conf);
    world.op = kit_op(world.kit, COLL_FENCE, "", NULL, N);
    world.tree = kit_tree(world.op, 16);
    for (uint32_t i = 0; i < N - 1; i++)
        world.child[i] = tree_child(&world.tree, world.tree.root, i);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N; i++)
        wire_out_free(&world.kept[i]);
    kit_end(world.kit);
    return 0;
}

/* Pieces that were kept back arrive. */
static void hand_over(void)
{
    uint32_t to = world.victim, giver = tree_giver(&world.tree, to);
    assert_true(world.nkept > 1);
    for (uint32_t i = 0; i < world.nkept; i++)
        assert_true(engine_take(loopback_engine(world.kit->net, to), giver, FRAME_PIECE,
                                world.kept[i].data, world.kept[i].len));
}

/* All call, but pieces to a child of the root do not arrive. */
static void keep_from(uint32_t child, struct kit_call *calls[N], uint32_t timeout)
{
    world.victim = world.child[child];
    for (uint32_t slot = 0; slot < N; slot++)
        calls[slot] = kit_call(world.kit, world.op, slot, (struct kit_ask){.timeout = timeout});
    loopback_run(world.kit->net, 400);
}

static void pieces_of(uint32_t nnodes, uint32_t arity)
{
    struct loopback_conf conf = network(nnodes, arity);
    struct kit *kit = kit_new(&conf);
    struct kit_op *op = kit_op(kit, COLL_FENCE, "", NULL, nnodes);
    world = (struct world){.victim = NOBODY};
    for (int round = 0; round < 3; round++)
        kit_call_all(kit, op, (struct kit_ask){0});
    loopback_run(kit->net, 20000);
    kit_assert_all(kit, 0);
    assert_int_equal(kit_trackers(kit), 0);
    uint32_t pairs = 0;
    for (uint32_t from = 0; from < nnodes; from++) {
        uint32_t takers = 0;
        for (uint32_t to = 0; to < nnodes; to++)
            takers += world.sent[from][to] > 0;
        assert_true(takers <= 3);
        pairs += takers;
    }
    /* each but the root takes pieces from one other; one child alone gets all at once */
    assert_int_equal(pairs, nnodes > 2 ? nnodes - 1 : 0);
    kit_end(kit);
}

static void in_every_size_and_arity(void **state)
{
    (void)state;
    kit_every_size(pieces_of);
}

/* Results that others may have to be told again, and small ones, go as a whole. */
static void only_fences_with_much_data(void **state)
{
    struct loopback_conf conf = network(N, 16);
    (void)state;
    conf.large = 1 << 20;
    world = (struct world){.victim = NOBODY};
    struct kit *kit = kit_new(&conf);
    kit_call_all(kit, kit_op(kit, COLL_FENCE, "", NULL, N), (struct kit_ask){0});
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    kit_end(kit);
    conf.large = 1;
    kit = kit_new(&conf);
    kit_call_all(kit, kit_op(kit, COLL_CONSTRUCT, "g", NULL, N), (struct kit_ask){0});
    loopback_run(kit->net, 10000);
    kit_assert_all(kit, 0);
    kit_end(kit);
    for (uint32_t from = 0; from < N; from++)
        for (uint32_t to = 0; to < N; to++)
            assert_int_equal(world.sent[from][to], 0);
}

/* With the bounds of a server, which are documented. */
static void from_4_mib_and_nine_servers_on(void **state)
{
    static const struct {
        enum coll_kind kind;
        uint32_t servers;
        size_t bytes;
        bool due;
    } cases[] = {
        {COLL_FENCE, 9, 4 << 20, true},     {COLL_FENCE, 9, (4 << 20) - 1, false},
        {COLL_FENCE, 8, 4 << 20, false},    {COLL_FENCE, 8, 256 << 20, false},
        {COLL_FENCE, 1000, 64 << 20, true}, {COLL_FENCE, 1000, 1 << 20, false},
        {COLL_CONNECT, 9, 64 << 20, false}, {COLL_CONSTRUCT, 9, 64 << 20, false},
    };
    struct engine engine = {.env = {.large = ENGINE_LARGE, .few = ENGINE_FEW}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t half = cases[i].bytes / 2; /* of two servers; what the others have is empty */
        const struct engine_entry entries[] = {{.len = half}, {.len = cases[i].bytes - half}};
        struct tracker t = {.parts = {.kind = cases[i].kind}, .tree = {.n = cases[i].servers}};
        assert_int_equal(pieces_are_due(&engine, &t, entries, 2), cases[i].due);
        engine.env.large = 0; /* there are no direct connections */
        assert_false(pieces_are_due(&engine, &t, entries, 2));
        engine.env.large = ENGINE_LARGE;
    }
    assert_int_equal(ENGINE_PIECE, 64 << 10);
}

/* The root's word is here; the next fence fails before the data of this one are. */
static void the_next_failure_waits_for_the_data(void **state)
{
    struct kit_call *calls[N], *next[N];
    uint32_t late = world.child[N - 2];
    (void)state;
    keep_from(N - 2, calls, 0);
    world.victim = NOBODY; /* the next fence's would go through */
    for (uint32_t slot = 0; slot < N; slot++)
        assert_int_equal(calls[slot]->answers, slot != late);
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != late)
            next[slot] = kit_call(world.kit, world.op, slot, (struct kit_ask){.status = STATUS});
    loopback_run(world.kit->net, 400);
    assert_int_equal(calls[late]->answers, 0);
    world.victim = late;
    hand_over();
    assert_int_equal(calls[late]->answers, 1);
    assert_int_equal(calls[late]->status, 0);
    next[late] = kit_call(world.kit, world.op, late, (struct kit_ask){0});
    loopback_run(world.kit->net, 10000);
    for (uint32_t slot = 0; slot < N; slot++) {
        assert_int_equal(next[slot]->answers, 1);
        assert_int_equal(next[slot]->status, STATUS);
    }
}

/* The server that hands the data on is lost: the data come no more, to the servers behind it
 * either. */
static void who_hands_on_is_lost(void **state)
{
    struct kit_call *calls[N];
    (void)state;
    keep_from(1, calls, 0);
    loopback_kill(world.kit->net, world.child[0], 10, 20);
    loopback_run(world.kit->net, 1000);
    for (uint32_t i = 0; i < N - 1; i++) {
        bool behind = i == 1 || i == 3 || i == 4;
        if (i > 0)
            assert_int_equal(calls[world.child[i]]->status, behind ? LOOPBACK_LOST : 0);
        assert_int_equal(calls[world.child[i]]->answers, 1);
    }
    kit_call_all(world.kit, world.op, (struct kit_ask){0});
    loopback_run(world.kit->net, 10000); /* needs the lost one, too */
    for (struct kit_call *call = world.kit->calls; call != NULL; call = call->next)
        assert_int_equal(call->answers, 1);
}

/* A server that is farther up is lost: those behind learn it from who hands on to them. */
static void a_loss_is_handed_on(void **state)
{
    struct kit_call *calls[N];
    struct wire_out release = {0};
    uint32_t third = world.child[3];
    (void)state;
    keep_from(1, calls, 0);
    assert_int_equal(calls[third]->answers, 0);
    /* The loss, as the second child says it. */
    wire_put_u64(&release, 0);
    wire_put_block(&release, world.op->sig, world.op->siglen);
    wire_put_u64(&release, 0);
    wire_put_i32(&release, LOOPBACK_LOST);
    for (int i = 0; i < 8; i++) /* context id, flags, assembly, nobody twice, pieces, entries */
        wire_put_u32(&release, 0);
    wire_put_u32(&release, 0);
    engine_take(loopback_engine(world.kit->net, third), world.child[2], FRAME_RELEASE, release.data,
                release.len);
    assert_int_equal(calls[third]->answers, 0); /* that one has nothing to do with it */
    engine_take(loopback_engine(world.kit->net, third), world.child[1], FRAME_RELEASE, release.data,
                release.len);
    assert_int_equal(calls[third]->status, LOOPBACK_LOST);
    wire_out_free(&release);
}

/* A server that has no time left hands on what comes nevertheless. */
static void who_gives_up_hands_on(void **state)
{
    struct kit_call *calls[N];
    uint32_t victim = world.child[1];
    (void)state;
    world.victim = victim;
    for (uint32_t slot = 0; slot < N; slot++)
        calls[slot] =
            kit_call(world.kit, world.op, slot, (struct kit_ask){.timeout = slot == victim});
    loopback_run(world.kit->net, 7000); /* its timeout, and 5 s */
    assert_int_equal(calls[victim]->status, LOOPBACK_TIMEOUT);
    kit_assert_logged(world.kit, "has not handed on all data");
    assert_int_equal(calls[world.child[3]]->answers, 0);
    hand_over();
    world.victim = NOBODY;
    loopback_run(world.kit->net, 1000);
    for (uint32_t i = 0; i < N - 1; i++)
        assert_int_equal(calls[world.child[i]]->status, i == 1 ? LOOPBACK_TIMEOUT : 0);
}

/* A server that gave up before it had the data knows that the root's word was another one: the next
 * failure is its next call's. */
static void who_gives_up_knows_the_word(void **state)
{
    struct kit_call *calls[N], *next[N];
    uint32_t late = world.child[N - 2];
    (void)state;
    world.victim = late;
    for (uint32_t slot = 0; slot < N; slot++)
        calls[slot] =
            kit_call(world.kit, world.op, slot, (struct kit_ask){.timeout = slot == late});
    loopback_run(world.kit->net, 400);
    for (uint32_t slot = 0; slot < N; slot++)
        if (slot != late)
            next[slot] = kit_call(world.kit, world.op, slot, (struct kit_ask){.status = STATUS});
    loopback_run(world.kit->net, 7000); /* its timeout, and 5 s */
    assert_int_equal(calls[late]->status, LOOPBACK_TIMEOUT);
    next[late] = kit_call(world.kit, world.op, late, (struct kit_ask){0});
    loopback_run(world.kit->net, 1000);
    for (uint32_t slot = 0; slot < N; slot++) {
        assert_int_equal(next[slot]->answers, 1);
        assert_int_equal(next[slot]->status, STATUS);
    }
}

/* When nothing is lost, and nothing comes, it ends all the same. */
static void it_does_not_wait_for_ever(void **state)
{
    struct kit_call *calls[N];
    (void)state;
    keep_from(1, calls, 0);
    loopback_run(world.kit->net, 3600000);
    for (uint32_t slot = 0; slot < N; slot++)
        assert_int_equal(calls[slot]->answers, 1);
    assert_int_equal(calls[world.child[1]]->status, LOOPBACK_TIMEOUT);
}

/* A result lists what has data; in a release, too, an entry without is a lie. */
static void a_release_with_an_empty_entry(void **state)
{
    struct wire_out out = {0};
    uint32_t first = world.child[0];
    struct kit_call *call = kit_call(world.kit, world.op, first, (struct kit_ask){0});
    (void)state;
    wire_put_u64(&out, 0);
    wire_put_block(&out, world.op->sig, world.op->siglen);
    wire_put_u64(&out, 1ull << 40);
    for (int i = 0; i < 9; i++) /* status, context id, flags, assembly, nobody twice, pieces */
        wire_put_u32(&out, 0);
    wire_put_u32(&out, 1);
    for (int i = 0; i < 3; i++) /* slot, no data, no members */
        wire_put_u32(&out, 0);
    engine_take(loopback_engine(world.kit->net, first), world.tree.root, FRAME_RELEASE, out.data,
                out.len);
    wire_out_free(&out);
    kit_assert_logged(world.kit, "a malformed release");
    assert_int_equal(call->answers, 0);
}

static void put_piece(struct wire_out *out, const void *sig, size_t siglen, uint32_t first,
                      uint32_t second, uint32_t len)
{
    wire_put_block(out, sig, siglen);
    wire_put_u64(out, 1ull << 40);
    wire_put_u32(out, 2);
    wire_put_u32(out, first);
    wire_put_block(out, "data", 4);
    wire_put_block(out, NULL, 0);
    wire_put_u32(out, second);
    wire_put_block(out, "data", len);
    wire_put_block(out, NULL, 0);
}

/* Pieces that make no sense are dropped, and count for nothing. */
static void lies(void **state)
{
    static const struct {
        uint32_t from, to, first, second, len, cut; /* from and to: children; N: the root */
    } bad[] = {
        {2, 1, 0, 1, 4, 0}, /* who hands nothing to it */
        {0, N, 0, 1, 4, 0}, /* to the root */
        {0, 1, 1, 1, 4, 0}, /* one twice */
        {0, 1, 2, 1, 4, 0}, /* not in order */
        {0, 1, 0, N, 4, 0}, /* no such slot */
        {0, 1, 0, 1, 0, 0}, /* without data */
        {0, 1, 0, 1, 4, 1}, /* cut */
    };
    struct kit_op *construct = kit_op(world.kit, COLL_CONSTRUCT, "g", NULL, N);
    (void)state;
    for (uint32_t slot = 1; slot < N; slot++)
        kit_call(world.kit, world.op, world.child[slot - 1], (struct kit_ask){0});
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        struct wire_out out = {0};
        bool kept = i == sizeof bad / sizeof *bad; /* a kind that does not go in pieces */
        const struct kit_op *op = kept ? construct : world.op;
        struct tree tree = kit_tree(op, 16);
        uint32_t from = kept ? tree.root : world.child[bad[i].from];
        uint32_t to = kept             ? tree_child(&tree, tree.root, 0)
                      : bad[i].to == N ? world.tree.root
                                       : world.child[bad[i].to];
        put_piece(&out, op->sig, op->siglen, kept ? 0 : bad[i].first, kept ? 1 : bad[i].second,
                  kept ? 4 : bad[i].len);
        world.kit->loglen = 0;
        engine_take(loopback_engine(world.kit->net, to), from, FRAME_PIECE, out.data,
                    out.len - (kept ? 0 : bad[i].cut));
        kit_assert_logged(world.kit, "does not belong here");
        wire_out_free(&out);
    }
    kit_call(world.kit, world.op, world.tree.root, (struct kit_ask){0});
    loopback_run(world.kit->net, 10000);
    kit_assert_all(world.kit, 0);
}

int main(void)
{
#define ON_EIGHT(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_every_size_and_arity),
        cmocka_unit_test(only_fences_with_much_data),
        cmocka_unit_test(from_4_mib_and_nine_servers_on),
        ON_EIGHT(the_next_failure_waits_for_the_data),
        ON_EIGHT(who_hands_on_is_lost),
        ON_EIGHT(a_loss_is_handed_on),
        ON_EIGHT(who_gives_up_hands_on),
        ON_EIGHT(who_gives_up_knows_the_word),
        ON_EIGHT(it_does_not_wait_for_ever),
        ON_EIGHT(a_release_with_an_empty_entry),
        ON_EIGHT(lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
