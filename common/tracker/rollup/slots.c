/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers of an operation: their slots, the tree over them, and the participants that are
 * missing there. */
#include "common/tracker/rollup/tracker.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t tracker_slot_of(const struct tracker *t, uint32_t node)
{
    return places_slot(&t->places, node);
}

uint32_t tracker_node(const struct tracker *t, uint32_t slot)
{
    return places_node(&t->places, slot);
}

struct tracker_child *tracker_child_of(const struct tracker *t, uint32_t slot)
{
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (t->children[i].slot == slot)
            return &t->children[i];
    return NULL;
}

/* Follows the shape with some of its servers. */
static int follow(const struct engine *engine, struct tracker *t)
{
    uint32_t *nodes = calloc(t->places.n, sizeof *nodes);
    int rc = nodes != NULL ? 0 : -1;
    for (uint32_t i = 0; i < t->places.n && rc == 0; i++)
        nodes[i] = tracker_node(t, i);
    if (rc == 0)
        rc = tree_follow(&t->tree, &engine->shape, nodes);
    free(nodes);
    return rc;
}

/* Servers of other steps are in no shape. @return 0, or -1: out of memory */
static int make_tree(const struct engine *engine, struct tracker *t)
{
    const struct places *places = &t->places;
    const struct places_run *first = &places->runs[0];
    if (places->nruns == 1 && first->node == 0 && first->n == engine->shape.n) {
        t->tree = engine->whole;
        t->tree.borrowed = true;
        return 0;
    }
    t->tree = (struct tree){
        .n = places->n, .arity = engine->env.arity, .root = (uint32_t)(t->hash % places->n)};
    for (uint32_t i = 0; i < places->nruns; i++)
        if (places->runs[i].node + places->runs[i].n > engine->shape.n)
            return 0;
    return follow(engine, t);
}

static int find_children(struct tracker *t)
{
    t->parent = tree_parent(&t->tree, t->self);
    t->grace = (uint64_t)tree_depth(&t->tree, t->self) * ENGINE_HOP_MS;
    if (t->parent != TREE_NONE && t->grace < ENGINE_GRACE_MS)
        t->grace = ENGINE_GRACE_MS;
    while (t->nchildren < t->tree.arity && tree_child(&t->tree, t->self, t->nchildren) != TREE_NONE)
        t->nchildren++;
    t->children = calloc(t->nchildren + 1ul, sizeof *t->children);
    for (uint32_t i = 0; i < t->nchildren && t->children != NULL; i++)
        t->children[i].slot = tree_child(&t->tree, t->self, i);
    return t->children != NULL ? 0 : -1;
}

int tracker_place(const struct engine *engine, struct tracker *t)
{
    return make_tree(engine, t) == 0 ? find_children(t) : -1;
}

uint32_t tracker_tree_id(const struct engine *engine, const struct tracker *t)
{
    return t->tree.slots != NULL ? engine->shape.id : engine->env.arity;
}

uint32_t tracker_bringer(const struct tracker *t)
{
    return t->data.decided != 0 ? tree_giver(&t->tree, t->self) : t->parent;
}

/* Whether our own contribution is here: our call, or why it does not come. */
static bool has_own(const struct tracker *t)
{
    return t->call != NULL || t->own_status != 0;
}

bool tracker_is_complete(const struct tracker *t)
{
    bool complete = has_own(t);
    for (uint32_t i = 0; i < t->nchildren && complete; i++)
        complete = t->children[i].said != CHILD_NOTHING && t->children[i].nmissing == 0;
    return complete;
}

uint32_t tracker_awaited(const struct tracker *t, struct ranges *slots)
{
    uint32_t n = !has_own(t);
    if (n > 0)
        ranges_add(slots, t->self, t->self);
    for (uint32_t i = 0; i < t->nchildren; i++) {
        const struct tracker_child *child = &t->children[i];
        struct ranges below = {0};
        if (child->said == CHILD_NOTHING) {
            tree_subtree(&t->tree, child->slot, &below);
            n += (uint32_t)ranges_count(&below);
        } else if (child->said == CHILD_PART) {
            n += child->nmissing;
        }
        const struct ranges *more = child->said == CHILD_PART ? &child->missing : &below;
        ranges_unite(slots, more);
        ranges_free(&below);
    }
    ranges_canonical(slots);
    return n;
}

uint32_t *tracker_nodes(const struct tracker *t, const struct ranges *slots, uint32_t *n)
{
    uint32_t *nodes = calloc(ranges_count(slots) + 1, sizeof *nodes);
    *n = 0;
    for (struct ranges_at at = {0}; nodes != NULL && ranges_next(slots, &at);)
        nodes[(*n)++] = tracker_node(t, at.number);
    return nodes;
}

void tracker_missing(struct engine *engine, struct tracker *t, char *buf, size_t cap)
{
    struct ranges slots = {0};
    char what[320], who[512] = "";
    uint32_t n = tracker_awaited(t, &slots), named = 0;
    uint32_t *nodes = tracker_nodes(t, &slots, &named);
    signature_describe(t->sig, t->siglen, what, sizeof what);
    engine->env.ranks(engine->env.arg, &t->parts, nodes, named, true, who, sizeof who);
    snprintf(buf, cap, "%s: %u of %u nodes missing: %s%s", what, n, t->tree.n, who,
             named < n ? ", and others" : "");
    ranges_free(&slots);
    free(nodes);
}
