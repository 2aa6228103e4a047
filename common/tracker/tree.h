/** @file
 * The shape of a collective: a k-ary tree over the slots 0..n-1 of its participating servers.
 *
 * The root is spread by the signature's hash, so that concurrent groups do not share a hot spot.
 * Every server computes the same tree from n, root and arity alone.
 */
#ifndef MUSTER_TRACKER_TREE_H
#define MUSTER_TRACKER_TREE_H

#include <stdbool.h>
#include <stdint.h>

/** One operation's tree. */
struct tree {
    uint32_t n;     /**< slots, at least 1 */
    uint32_t root;  /**< slot of the root */
    uint32_t arity; /**< children of a slot at most, at least 2 */
};

enum { TREE_NONE = 0xffffffff };

/** @return the parent of @p slot, or TREE_NONE for the root */
uint32_t tree_parent(const struct tree *tree, uint32_t slot);

/** @return child number @p i (0..arity-1) of @p slot, or TREE_NONE */
uint32_t tree_child(const struct tree *tree, uint32_t slot, uint32_t i);

/** @return whether @p slot is @p top or below it */
bool tree_below(const struct tree *tree, uint32_t top, uint32_t slot);

#endif
