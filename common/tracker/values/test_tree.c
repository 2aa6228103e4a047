/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the tree: parents and children agree, and every slot is reached exactly once.
 */
#include "common/tracker/values/tree.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX = 70 };

static void check(const struct tree *tree)
{
    unsigned reached[MAX] = {0};
    for (uint32_t slot = 0; slot < tree->n; slot++) {
        bool ended = false;
        for (uint32_t i = 0; i < tree->arity + 2; i++) {
            uint32_t child = tree_child(tree, slot, i);
            assert_false(ended && child != TREE_NONE); /* callers stop at the first gap */
            ended |= child == TREE_NONE;
            if (child == TREE_NONE)
                continue;
            assert_true(i < tree->arity && child < tree->n);
            assert_int_equal(tree_parent(tree, child), slot);
            reached[child]++;
        }
    }
    for (uint32_t slot = 0; slot < tree->n; slot++) {
        assert_int_equal(reached[slot], slot != tree->root);
        assert_int_equal(tree_parent(tree, slot) == TREE_NONE, slot == tree->root);
    }
}

/* Large data reach each slot once, from one whom its parent is above or equal to. */
static void check_givers(const struct tree *tree)
{
    unsigned reached[MAX] = {0};
    for (uint32_t slot = 0; slot < tree->n; slot++)
        for (uint32_t i = 0; i < TREE_TAKERS; i++) {
            uint32_t taker = tree_taker(tree, slot, i);
            if (taker == TREE_NONE)
                continue;
            assert_true(taker < tree->n);
            assert_int_equal(tree_giver(tree, taker), slot);
            reached[taker]++;
        }
    for (uint32_t slot = 0; slot < tree->n; slot++) {
        uint32_t at = slot;
        assert_int_equal(reached[slot], slot != tree->root);
        while (at != tree_parent(tree, slot))
            at = tree_giver(tree, at); /* a parent has them before its children */
    }
}

/* tree_below() and tree_subtree() against the walk up by tree_parent(). */
static void check_below(const struct tree *tree)
{
    for (uint32_t top = 0; top < tree->n; top++) {
        struct ranges subtree = {0};
        assert_int_equal(tree_subtree(tree, top, &subtree), 0);
        for (uint32_t slot = 0; slot < tree->n; slot++) {
            uint32_t at = slot;
            while (at != top && at != TREE_NONE)
                at = tree_parent(tree, at);
            assert_int_equal(tree_below(tree, top, slot), at == top);
            assert_int_equal(ranges_have(&subtree, slot), at == top);
        }
        assert_true(subtree.n == 0 || subtree.v[subtree.n - 1].last < tree->n);
        ranges_free(&subtree);
    }
}

static void every_shape(void **state)
{
    static const uint32_t arities[] = {2, 3, 5, 16, 1024};
    (void)state;
    for (size_t a = 0; a < sizeof arities / sizeof *arities; a++)
        for (uint32_t n = 1; n <= MAX; n += n < 20 ? 1 : 7)
            for (uint32_t root = 0; root < n; root += 1 + n / 9) {
                struct tree tree = {.n = n, .root = root, .arity = arities[a]};
                check(&tree);
                check_givers(&tree);
                check_below(&tree);
            }
}

static void a_tree_as_large_as_it_gets(void **state)
{
    struct tree tree = {.n = 0xffffffff, .root = 0xfffffff0, .arity = 1024};
    (void)state;
    assert_int_equal(tree_parent(&tree, 0xfffffff0), TREE_NONE);
    assert_int_equal(tree_child(&tree, 0xfffffff0, 0), 0xfffffff1);
    assert_int_equal(tree_parent(&tree, 0xfffffff1), 0xfffffff0);
    assert_int_equal(tree_child(&tree, 0xffffffef, 0), TREE_NONE); /* the last place */
    assert_true(tree_below(&tree, 0xfffffff0, 0xffffffef));
    assert_false(tree_below(&tree, 0xffffffef, 0xfffffff0));
}

/* A slot is below every participant that is above it in the shape, and directly below its parent.
 */
static void check_above(const struct tree *tree, const uint32_t *parents, const uint32_t *servers)
{
    for (uint32_t slot = 0; slot < tree->n; slot++)
        for (uint32_t at = parents[servers[slot]]; at != TREE_NONE; at = parents[at])
            for (uint32_t i = 0; i < tree->n; i++) {
                if (servers[i] != at)
                    continue;
                assert_true(tree_below(tree, i, slot));
                if (at == parents[servers[slot]])
                    assert_int_equal(tree_parent(tree, slot), i);
            }
}

/* Any forest, any participants. */
static void follows_a_shape(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint32_t n, parents[MAX], servers[MAX], places[MAX];
        struct tree_shape shape;
        struct tree tree = {0};
#define RANDOM(below) ((seed = seed * 1664525 + 1013904223) >> 8) % (below)
        n = 1 + RANDOM(MAX);
        for (uint32_t i = 0; i < n; i++) { /* places: a parent may come after its child */
            uint32_t k = RANDOM(i + 1);
            places[i] = places[k];
            places[k] = i;
        }
        for (uint32_t i = 0; i < n; i++)
            parents[places[i]] = i == 0 || RANDOM(20) == 0 ? TREE_NONE : places[RANDOM(i)];
        for (uint32_t i = 0; i < n; i++)
            if (RANDOM(3) > 0 || (i + 1 == n && tree.n == 0))
                servers[tree.n++] = i;
        assert_int_equal(tree_shape_init(&shape, parents, n), 0);
        assert_int_equal(tree_follow(&tree, &shape, servers), 0);
        check(&tree);
        check_givers(&tree);
        check_below(&tree);
        check_above(&tree, parents, servers);
        for (uint32_t slot = 0; slot < tree.n; slot++) /* one root, above all */
            assert_true(tree_below(&tree, tree.root, slot));
        tree_free(&tree);
        tree_shape_free(&shape);
    }
}

/* 0 has 1 and 2; 1 has 3 and 4; 2 has 5 and 6. */
static void stands_in_for_who_is_not_there(void **state)
{
    static const uint32_t parents[] = {TREE_NONE, 0, 0, 1, 1, 2, 2}, leaves[] = {3, 4, 5, 6};
    struct tree_shape shape;
    struct tree tree = {.n = 4};
    (void)state;
    assert_int_equal(tree_shape_init(&shape, parents, 7), 0);
    assert_int_equal(tree_follow(&tree, &shape, leaves), 0);
    assert_int_equal(tree.root, 0);             /* 3, for 1 and then for 0 */
    assert_int_equal(tree_parent(&tree, 1), 0); /* 4 below 3 */
    assert_int_equal(tree_parent(&tree, 2), 0); /* 5, for 2, below 3, for 0 */
    assert_int_equal(tree_parent(&tree, 3), 2); /* 6 below 5, for 2 */
    tree_free(&tree);
    tree_shape_free(&shape);
}

static void no_shapes(void **state)
{
    static const uint32_t ring[] = {TREE_NONE, 2, 3, 1}, itself[] = {0}, outside[] = {TREE_NONE, 2},
                          chain[] = {TREE_NONE, 0, 1}, twice[] = {1, 1}, strange[] = {0, 3};
    struct tree_shape shape;
    struct tree tree = {.n = 2};
    (void)state;
    assert_int_equal(tree_shape_init(&shape, ring, 4), -1);
    tree_shape_free(&shape);
    assert_int_equal(tree_shape_init(&shape, itself, 1), -1);
    tree_shape_free(&shape);
    assert_int_equal(tree_shape_init(&shape, outside, 2), -1);
    tree_shape_free(&shape);
    assert_int_equal(tree_shape_init(&shape, chain, 3), 0);
    assert_true(shape.id > TREE_ARITY_MAX);
    assert_int_equal(tree_follow(&tree, &shape, twice), -1);
    assert_int_equal(tree_follow(&tree, &shape, strange), -1);
    tree_shape_free(&shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),     cmocka_unit_test(a_tree_as_large_as_it_gets),
        cmocka_unit_test(follows_a_shape), cmocka_unit_test(stands_in_for_who_is_not_there),
        cmocka_unit_test(no_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
