#include "common/tracker/tree.h"

/* Position in the tree that has its root at 0. */
static uint64_t place(const struct tree *tree, uint32_t slot)
{
    return ((uint64_t)slot + tree->n - tree->root) % tree->n;
}

static uint32_t slot_at(const struct tree *tree, uint64_t place)
{
    return (uint32_t)((place + tree->root) % tree->n);
}

uint32_t tree_parent(const struct tree *tree, uint32_t slot)
{
    uint64_t p = place(tree, slot);
    return p == 0 ? TREE_NONE : slot_at(tree, (p - 1) / tree->arity);
}

uint32_t tree_child(const struct tree *tree, uint32_t slot, uint32_t i)
{
    uint64_t p = place(tree, slot) * tree->arity + 1 + i;
    return p < tree->n && i < tree->arity ? slot_at(tree, p) : TREE_NONE;
}

bool tree_below(const struct tree *tree, uint32_t top, uint32_t slot)
{
    uint64_t t = place(tree, top), p = place(tree, slot);
    while (p > t)
        p = (p - 1) / tree->arity;
    return p == t;
}
