/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers and processes that are lost to an operation. */
#include "common/tracker/rollup/tracker.h"

int members_on(const struct engine *engine, const struct procset *set, uint32_t node,
               struct procset *there)
{
    const struct engine_env *env = &engine->env;
    int rc = 0;
    uint32_t found;
    if (env->members_on != NULL)
        return env->members_on(env->arg, set, node, there);
    for (struct procset_at at = {0}; rc == 0 && procset_next(set, &at);) {
        rc = env->node_of(env->arg, at.nspace, at.rank, &found);
        if (rc == 0 && found == node)
            rc = procset_add(there, at.nspace, at.rank, at.rank);
    }
    procset_canonical(there);
    return rc;
}

bool engine_is_lost(const struct engine *engine, uint32_t node)
{
    return ranges_have(&engine->lost, node) || ranges_have(&engine->left, node);
}

int32_t tracker_loss(const struct engine *engine, enum coll_kind kind, uint32_t node)
{
    bool left = ranges_have(&engine->left, node);
    return left && engine->env.left_status != NULL ? engine->env.left_status(engine->env.arg, kind)
                                                   : engine->env.codes.lost;
}

int32_t tracker_slot_loss(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return tracker_loss(engine, t->parts.kind, tracker_node(t, slot));
}

bool tracker_is_loss(const struct engine *engine, const struct tracker *t, int32_t status)
{
    return status == engine->env.codes.lost ||
           (engine->env.left_status != NULL &&
            status == engine->env.left_status(engine->env.arg, t->parts.kind));
}

bool tracker_slot_lost(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    return ranges_have(&t->lost, slot) || engine_is_lost(engine, tracker_node(t, slot));
}

static void add_lost(const struct tracker *t, const struct ranges *nodes, struct ranges *slots)
{
    for (struct ranges_at at = {0}; ranges_next(nodes, &at);) {
        uint32_t slot = tracker_slot_of(t, at.number);
        if (slot != TREE_NONE)
            ranges_add(slots, slot, slot);
    }
}

void tracker_lost_slots(const struct engine *engine, const struct tracker *t, struct ranges *slots)
{
    ranges_unite(slots, &t->lost);
    add_lost(t, &engine->lost, slots);
    add_lost(t, &engine->left, slots);
    ranges_canonical(slots);
}

void tracker_gone(struct engine *engine, struct tracker *t, uint32_t node)
{
    members_on(engine, &t->parts.members, node, &t->gone);
}

void tracker_gone_here(struct engine *engine, struct tracker *t)
{
    engine->env.local_gone(engine->env.arg, &t->parts, &t->gone);
}

const struct procset *tracker_take_gone(struct tracker *t, struct procset *gone)
{
    *gone = t->gone;
    t->gone = (struct procset){0};
    return gone->nparts > 0 ? gone : NULL;
}

void tracker_fail(struct tracker *t, int32_t status)
{
    if (t->status == 0 && status != 0) {
        t->status = status;
        if (t->news == NEWS_NONE)
            t->news = NEWS_SOME;
    }
}

void tracker_lose(struct engine *engine, struct tracker *t, uint32_t slot)
{
    ranges_put(&t->lost, slot);
    tracker_gone(engine, t, tracker_node(t, slot));
    /* Nothing comes up any more from below a lost server, so the servers there are lost to this
     * operation, too, and the servers above it report that. When a child has said all of its
     * subtree, the root may have decided: a failure that comes late would be of the next one. */
    for (uint32_t i = 0; i < t->nchildren; i++)
        if (t->children[i].said != CHILD_ALL && tree_below(&t->tree, t->children[i].slot, slot))
            tracker_fail(t, tracker_slot_loss(engine, t, slot));
}

void tracker_lose_known(struct engine *engine, struct tracker *t)
{
    struct ranges lost = {0};
    tracker_lost_slots(engine, t, &lost);
    for (struct ranges_at at = {0}; ranges_next(&lost, &at);)
        if (at.number != t->self)
            tracker_lose(engine, t, at.number);
    ranges_free(&lost);
}
