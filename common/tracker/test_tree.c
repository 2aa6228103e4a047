/** @file
 * Tests of the tree: parents and children agree, and every slot is reached exactly once.
 */
#include "common/tracker/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

/* tree_below() against the walk up by tree_parent(). */
static void check_below(const struct tree *tree)
{
    for (uint32_t top = 0; top < tree->n; top++)
        for (uint32_t slot = 0; slot < tree->n; slot++) {
            uint32_t at = slot;
            while (at != top && at != TREE_NONE)
                at = tree_parent(tree, at);
            assert_int_equal(tree_below(tree, top, slot), at == top);
        }
}

static void every_shape(void **state)
{
    static const uint32_t arities[] = {2, 3, 5, 16, 1024};
    (void)state;
    for (size_t a = 0; a < sizeof arities / sizeof *arities; a++)
        for (uint32_t n = 1; n <= MAX; n += n < 20 ? 1 : 7)
            for (uint32_t root = 0; root < n; root += 1 + n / 9) {
                struct tree tree = {n, root, arities[a]};
                check(&tree);
                check_below(&tree);
            }
}

static void a_tree_as_large_as_it_gets(void **state)
{
    struct tree tree = {0xffffffff, 0xfffffff0, 1024};
    (void)state;
    assert_int_equal(tree_parent(&tree, 0xfffffff0), TREE_NONE);
    assert_int_equal(tree_child(&tree, 0xfffffff0, 0), 0xfffffff1);
    assert_int_equal(tree_parent(&tree, 0xfffffff1), 0xfffffff0);
    assert_int_equal(tree_child(&tree, 0xffffffef, 0), TREE_NONE); /* the last place */
    assert_true(tree_below(&tree, 0xfffffff0, 0xffffffef));
    assert_false(tree_below(&tree, 0xffffffef, 0xfffffff0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(a_tree_as_large_as_it_gets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
