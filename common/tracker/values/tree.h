/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The shape of a collective: a tree over the slots 0..n-1 of its participating servers.
 *
 * Either a k-ary one, whose root is spread by the signature's hash, so that concurrent groups do
 * not share a hot spot; or one that follows a shape which is given for all servers, those that do
 * not participate left out. Every server computes the same tree, from n, root and arity, or from
 * the shape and the participants.
 */
#pragma once

#include "common/tracker/values/ranges.h"

#include <stdbool.h>
#include <stdint.h>

/** One operation's tree. */
struct tree {
    uint32_t n;              /**< slots, at least 1 */
    uint32_t root;           /**< slot of the root */
    uint32_t arity;          /**< no slot has more children; at least 2, of a k-ary tree its k */
    struct tree_slot *slots; /**< of a tree that follows a shape; NULL: k-ary */
    bool borrowed;           /**< the slots are another tree's */
};

/** How servers hang together, whichever of them participate. */
struct tree_shape {
    uint32_t n;        /**< servers; 0: there is none */
    uint32_t id;       /**< a hash, greater than TREE_ARITY_MAX: another shape's is another one */
    uint32_t *parents; /**< TREE_NONE: it has none */
    uint32_t *order;   /**< all of them, each before its parent */
};

enum { TREE_NONE = 0xffffffff, TREE_ARITY_MAX = 0x7fffffff };

/** @return the parent of @p slot, or TREE_NONE for the root */
uint32_t tree_parent(const struct tree *tree, uint32_t slot);

/** @return how many slots are above @p slot */
uint32_t tree_depth(const struct tree *tree, uint32_t slot);

/** @return child number @p i (0..arity-1) of @p slot, or TREE_NONE */
uint32_t tree_child(const struct tree *tree, uint32_t slot, uint32_t i);

/** Large data go down another way, on which no server has more than three to send them to: each
 * slot hands them to its first child, and the children of one slot to each other, number i to
 * numbers 2i+1 and 2i+2. A slot above another in the tree has them before it.
 * @return the slot that hands them to @p slot, or TREE_NONE for the root */
uint32_t tree_giver(const struct tree *tree, uint32_t slot);

enum { TREE_TAKERS = 3 };

/** @return the slot to which @p slot hands them, number @p i (0..TREE_TAKERS-1) of these, or
 * TREE_NONE */
uint32_t tree_taker(const struct tree *tree, uint32_t slot, uint32_t i);

/** @return whether @p slot is @p top or below it */
bool tree_below(const struct tree *tree, uint32_t top, uint32_t slot);

/** Adds the slots of @p top and all below it to @p set, which is canonical afterwards.
 * @return 0, or -1: out of memory */
int tree_subtree(const struct tree *tree, uint32_t top, struct ranges *set);

/**
 * @param shape   filled in; tree_shape_free() it also after an error
 * @param parents of each server, or TREE_NONE; copied
 * @param n       servers
 * @return 0, or -1: these are no trees, or memory is out
 */
int tree_shape_init(struct tree_shape *shape, const uint32_t *parents, uint32_t n);

void tree_shape_free(struct tree_shape *shape);

/**
 * Has @p tree follow a shape: a slot hangs below the nearest server above it that participates. In
 * the place of one that does not, and has participants below it, stands the first of those.
 * @param tree    n is set; the rest is filled in, tree_free() it
 * @param servers of each slot; borrowed
 * @return 0, or -1: a server is not in the shape or there twice, or memory is out
 */
int tree_follow(struct tree *tree, const struct tree_shape *shape, const uint32_t *servers);

/** Frees what tree_follow() has made, unless it is borrowed. */
void tree_free(struct tree *tree);
