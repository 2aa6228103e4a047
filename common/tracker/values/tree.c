/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Computes parent and children of a slot: by arithmetic in a k-ary tree, or by hanging the
 * participants below their nearest participating ancestor in a given shape.
 */
#include "common/tracker/values/tree.h"

#include <stdlib.h>
#include <string.h>

/* A slot of a tree that follows a shape. */
struct tree_slot {
    uint32_t parent;
    uint32_t first, n; /* its children, in child of the slots from first on */
    uint32_t child;
};

/* Position in the k-ary tree that has its root at 0. */
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
    if (tree->slots != NULL)
        return tree->slots[slot].parent;
    uint64_t p = place(tree, slot);
    return p == 0 ? TREE_NONE : slot_at(tree, (p - 1) / tree->arity);
}

uint32_t tree_depth(const struct tree *tree, uint32_t slot)
{
    uint32_t depth = 0;
    while ((slot = tree_parent(tree, slot)) != TREE_NONE)
        depth++;
    return depth;
}

uint32_t tree_child(const struct tree *tree, uint32_t slot, uint32_t i)
{
    if (tree->slots != NULL) {
        const struct tree_slot *s = &tree->slots[slot];
        return i < s->n ? tree->slots[s->first + i].child : TREE_NONE;
    }
    uint64_t p = place(tree, slot) * tree->arity + 1 + i;
    return p < tree->n && i < tree->arity ? slot_at(tree, p) : TREE_NONE;
}

/* Which child of its parent a slot is. */
static uint32_t child_number(const struct tree *tree, uint32_t parent, uint32_t slot)
{
    if (tree->slots == NULL)
        return (uint32_t)((place(tree, slot) - 1) % tree->arity);
    uint32_t i = 0;
    while (tree_child(tree, parent, i) != slot)
        i++;
    return i;
}

uint32_t tree_giver(const struct tree *tree, uint32_t slot)
{
    uint32_t parent = tree_parent(tree, slot);
    uint32_t number = parent != TREE_NONE ? child_number(tree, parent, slot) : 0;
    return number == 0 ? parent : tree_child(tree, parent, (number - 1) / 2);
}

uint32_t tree_taker(const struct tree *tree, uint32_t slot, uint32_t i)
{
    if (i == 0)
        return tree_child(tree, slot, 0);
    uint32_t parent = tree_parent(tree, slot);
    return parent != TREE_NONE ? tree_child(tree, parent, 2 * child_number(tree, parent, slot) + i)
                               : TREE_NONE;
}

bool tree_below(const struct tree *tree, uint32_t top, uint32_t slot)
{
    if (tree->slots != NULL) {
        while (slot != top && slot != TREE_NONE)
            slot = tree->slots[slot].parent;
        return slot == top;
    }
    uint64_t t = place(tree, top), p = place(tree, slot);
    while (p > t)
        p = (p - 1) / tree->arity;
    return p == t;
}

/* Adds places first..last of a k-ary tree. */
static int add_places(const struct tree *tree, uint64_t first, uint64_t last, struct ranges *set)
{
    uint32_t from = slot_at(tree, first), to = slot_at(tree, last);
    if (from <= to)
        return ranges_add(set, from, to);
    return ranges_add(set, from, tree->n - 1) != 0 ? -1 : ranges_add(set, 0, to);
}

/* Each level of a k-ary subtree is a row of places. */
static int add_levels(const struct tree *tree, uint32_t top, struct ranges *set)
{
    uint64_t first = place(tree, top), last = first;
    int rc = 0;
    while (rc == 0 && first < tree->n) {
        rc = add_places(tree, first, last < tree->n ? last : tree->n - 1, set);
        first = first * tree->arity + 1;
        last = last * tree->arity + tree->arity;
    }
    return rc;
}

static int add_below(const struct tree *tree, uint32_t top, struct ranges *set)
{
    const struct tree_slot *s = &tree->slots[top];
    int rc = ranges_add(set, top, top);
    for (uint32_t i = 0; i < s->n && rc == 0; i++)
        rc = add_below(tree, tree->slots[s->first + i].child, set);
    return rc;
}

int tree_subtree(const struct tree *tree, uint32_t top, struct ranges *set)
{
    int rc = tree->slots != NULL ? add_below(tree, top, set) : add_levels(tree, top, set);
    ranges_canonical(set);
    return rc;
}

void tree_free(struct tree *tree)
{
    if (!tree->borrowed)
        free(tree->slots);
    tree->slots = NULL;
}

/* ---- shapes ---- */

/* FNV-1a over the numbers. The highest bit is set: it is no arity. */
static uint32_t hash(const uint32_t *parents, uint32_t n)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < n; i++)
        for (unsigned shift = 0; shift < 32; shift += 8)
            h = (h ^ (parents[i] >> shift & 255)) * 16777619u;
    return h | 0x80000000u;
}

/* Puts the servers of a list before those that are in the order. @return where it begins now */
static uint32_t put(struct tree_shape *shape, uint32_t begin, uint32_t i, const uint32_t *next)
{
    for (; i != TREE_NONE; i = next[i])
        shape->order[--begin] = i;
    return begin;
}

/* @param first of each server's list of children, and behind them of that of the tops; TREE_NONE
 * @return 0, or -1: some are in a ring */
static int sort(struct tree_shape *shape, uint32_t *first, uint32_t *next)
{
    uint32_t n = shape->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t parent = shape->parents[i];
        if (parent >= n && parent != TREE_NONE)
            return -1;
        uint32_t *list = &first[parent < n ? parent : n];
        next[i] = *list;
        *list = i;
    }
    uint32_t begin = put(shape, n, first[n], next);
    for (uint32_t at = n; at > begin; at--)
        begin = put(shape, begin, first[shape->order[at - 1]], next);
    return begin == 0 ? 0 : -1;
}

int tree_shape_init(struct tree_shape *shape, const uint32_t *parents, uint32_t n)
{
    uint32_t *lists = malloc(((size_t)2 * n + 1) * sizeof *lists);
    *shape = (struct tree_shape){.n = n};
    shape->parents = malloc((size_t)n * sizeof *shape->parents + 1);
    shape->order = malloc((size_t)n * sizeof *shape->order + 1);
    int rc = lists == NULL || shape->parents == NULL || shape->order == NULL ? -1 : 0;
    if (rc == 0) {
        memcpy(shape->parents, parents, (size_t)n * sizeof *parents);
        memset(lists, 0xff, ((size_t)2 * n + 1) * sizeof *lists);
        shape->id = hash(parents, n);
        rc = sort(shape, lists, lists + n + 1);
    }
    free(lists);
    return rc;
}

void tree_shape_free(struct tree_shape *shape)
{
    free(shape->parents);
    free(shape->order);
    *shape = (struct tree_shape){0};
}

/* Sets the parents and the root. @param at for each server: its slot, or the slot that stands there
 * for it */
static void hang(struct tree *tree, const struct tree_shape *shape, uint32_t *at)
{
    tree->root = TREE_NONE;
    for (uint32_t k = 0; k < shape->n; k++) {
        uint32_t server = shape->order[k], slot = at[server];
        uint32_t parent = shape->parents[server];
        uint32_t *above = parent == TREE_NONE ? &tree->root : &at[parent];
        if (slot == TREE_NONE)
            continue;
        if (*above == TREE_NONE)
            *above = slot;
        else
            tree->slots[slot].parent = *above;
    }
}

static void list_children(struct tree *tree)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < tree->n; i++)
        if (tree->slots[i].parent != TREE_NONE)
            tree->slots[tree->slots[i].parent].n++;
    for (uint32_t i = 0; i < tree->n; i++) {
        tree->slots[i].first = first;
        first += tree->slots[i].n;
        tree->slots[i].n = 0;
    }
    for (uint32_t i = 0; i < tree->n; i++)
        if (tree->slots[i].parent != TREE_NONE) {
            struct tree_slot *parent = &tree->slots[tree->slots[i].parent];
            tree->slots[parent->first + parent->n++].child = i;
        }
}

int tree_follow(struct tree *tree, const struct tree_shape *shape, const uint32_t *servers)
{
    uint32_t *at = malloc((size_t)shape->n * sizeof *at + 1);
    tree->slots = calloc(tree->n, sizeof *tree->slots);
    tree->arity = tree->n > 2 ? tree->n : 2;
    bool good = at != NULL && tree->slots != NULL;
    if (good)
        memset(at, 0xff, (size_t)shape->n * sizeof *at);
    for (uint32_t slot = 0; good && slot < tree->n; slot++) {
        good = servers[slot] < shape->n && at[servers[slot]] == TREE_NONE;
        if (good)
            at[servers[slot]] = slot;
        tree->slots[slot].parent = TREE_NONE;
    }
    if (good) {
        hang(tree, shape, at);
        list_children(tree);
    } else {
        tree_free(tree);
    }
    free(at);
    return good ? 0 : -1;
}
