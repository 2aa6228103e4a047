/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions that come from below (CONTRIB).
 *
 * A contribution is checked in this order: whether it belongs here at all; whether it is late, that
 * is, of an operation that has failed or ended already; whether its sender has missed the failure
 * of an earlier try; whether both servers fit together; whether what it says of its subtree makes
 * sense. Only then does it change anything.
 */
#include "common/tracker/frames.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* Whether the child's call that this is of is over here. The child may have said it twice
 * (say_again() in releases.c), or had not heard of the end when it said it. A failure that was
 * given up here, and a success, have no generation that could tell. */
static bool is_over(const struct tracker *t, uint32_t slot, uint64_t number)
{
    const struct tracker_child *child = tracker_child_of(t, slot);
    return child != NULL && number != 0 && child->over == number;
}

/* What a CONTRIB says. */
struct contrib {
    uint32_t slot; /* of the sender */
    uint64_t known, number, heard;
    bool later_try;
    uint64_t settled; /* of tries before: the last failure for good that the sender knows */
    uint32_t library, tree, timeout;
    uint64_t left;
    struct procset gone;
    int32_t status; /* of its subtree, as the rest */
    uint32_t flags;
    struct tracker_who last;
    uint32_t nmissing;
    struct ranges missing;
    struct engine_entry *entries;
    uint32_t nentries;
    const void *bytes; /* of the entries; borrowed */
    size_t len;
    struct shared_bytes *whole; /* what they are part of */
};

/* Whether the sender has not heard of a try before, which has failed for good: see tries.c. */
static bool is_skipping(const struct engine *engine, const struct tracker *t,
                        const struct contrib *contrib)
{
    return contrib->later_try && tries_known(engine, t, true) > contrib->settled;
}

/* Says what of two servers does not fit together. @return whether anything does not */
static bool does_not_fit(const struct engine *engine, const struct tracker *t,
                         const struct contrib *contrib)
{
    const struct engine_env *env = &engine->env;
    const char *there = env->name(env->arg, tracker_node(t, contrib->slot));
    const char *here = env->name(env->arg, env->self);
    uint32_t a = contrib->library, b = env->library, tree = tracker_tree_id(engine, t);
    char what[320];
    signature_describe(t->sig, t->siglen, what, sizeof what);
    if (a != b)
        log_error("%s: libpmix is %u.%u.%u on node %s and %u.%u.%u on node %s; every node of an "
                  "operation needs the same one: install one version everywhere",
                  what, a >> 16, a >> 8 & 255, a & 255, there, b >> 16, b >> 8 & 255, b & 255,
                  here);
    if (contrib->tree != tree && t->tree.slots == NULL && contrib->tree <= TREE_ARITY_MAX)
        log_error("%s: tree_arity is %u on node %s and %u on node %s; every node of an operation "
                  "needs the same one: set \"tree_arity\": %u in muster.json of both",
                  what, contrib->tree, there, tree, here,
                  contrib->tree > tree ? contrib->tree : tree);
    else if (contrib->tree != tree)
        log_error("%s: nodes %s and %s were told different trees of the servers; every node of an "
                  "operation needs the same one",
                  what, there, here);
    return a != b || contrib->tree != tree;
}

/* What a child says takes the place of what it has said before. @return whether there was memory */
static bool take_word(const struct engine *engine, struct tracker *t, struct tracker_child *child,
                      struct contrib *contrib)
{
    if (child->said == CHILD_ALL)
        return true;
    bool all = contrib->nmissing == 0 && contrib->status == 0;
    struct shared_bytes *entries =
        contrib->nentries > 0 ? shared_bytes_part(contrib->whole, contrib->bytes, contrib->len)
                              : NULL;
    if (contrib->nentries > 0 && entries == NULL)
        return false;
    shared_bytes_drop(child->entries);
    child->entries = entries;
    child->nentries = contrib->nentries;
    child->said = all ? CHILD_ALL : CHILD_PART;
    child->came = engine_now_us(engine);
    child->last = contrib->last;
    child->flags = contrib->flags;
    child->number = contrib->number;
    ranges_free(&child->missing);
    child->missing = contrib->missing;
    child->nmissing = contrib->nmissing;
    contrib->missing = (struct ranges){0};
    if (!all && !t->flushed) { /* below us half a second has passed already */
        t->flushed = true;
        t->news = NEWS_URGENT;
    } else if (t->news == NEWS_NONE) {
        t->news = NEWS_SOME;
    }
    return true;
}

static void take_contrib(struct engine *engine, struct tracker *t, struct contrib *contrib)
{
    struct tracker_child *child = tracker_child_of(t, contrib->slot);
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (!tracker_move(engine, t, TRACKER_CHILD))
        return;
    t->later_try = t->later_try || contrib->later_try;
    engine->retries = engine->retries || t->later_try;
    tracker_arm(engine, t, contrib->timeout, contrib->left);
    procset_unite(&t->gone, &contrib->gone);
    /* That some server cannot take part may be said by any server: see rollup_refuse(). */
    tracker_fail(t, contrib->status);
    if (child != NULL)
        child->call = contrib->number;
    if (child != NULL && !take_word(engine, t, child, contrib))
        tracker_fail(t, engine->env.codes.invalid);
    tracker_local_loss(engine, t);
    rollup_progress(engine, t);
}

/* Whether what the sender says of its subtree makes sense. */
static bool is_sound(const struct tracker *t, const struct contrib *contrib)
{
    bool all = contrib->nmissing == 0 && contrib->status == 0;
    bool good =
        contrib->nmissing <= t->tree.n && ranges_count(&contrib->missing) <= contrib->nmissing &&
        (!all ||
         (contrib->number != 0 && tree_below(&t->tree, contrib->slot, contrib->last.slot))) &&
        (contrib->status != 0 || tracker_child_of(t, contrib->slot) != NULL);
    for (uint32_t i = 0; good && i < contrib->nentries; i++)
        good = tree_below(&t->tree, contrib->slot, contrib->entries[i].slot) &&
               (all || contrib->entries[i].len == 0);
    for (uint32_t i = 0; good && i < contrib->missing.n; i++)
        good = contrib->missing.v[i].last < t->tree.n;
    return good && tree_below(&t->tree, t->self, contrib->slot);
}

static void read_contrib(struct contrib *contrib, struct wire_in *in)
{
    contrib->known = wire_get_u64(in);
    contrib->heard = wire_get_u64(in);
    contrib->later_try = wire_get_u8(in) != 0;
    contrib->settled = wire_get_u64(in);
    contrib->number = wire_get_u64(in);
    contrib->library = wire_get_u32(in);
    contrib->tree = wire_get_u32(in);
    contrib->timeout = wire_get_u32(in);
    contrib->left = wire_get_u64(in);
    procset_read(&contrib->gone, in);
    contrib->status = wire_get_i32(in);
    contrib->flags = wire_get_u32(in);
    contrib->last.slot = wire_get_u32(in);
    contrib->last.us = wire_get_u32(in);
    contrib->nmissing = wire_get_u32(in);
    ranges_read(&contrib->missing, UINT32_MAX, in);
    contrib->bytes = in->p;
    contrib->len = in->bad ? 0 : (size_t)(in->end - in->p);
}

/* @return the tracker that a contribution is for, or NULL: it is gone */
static struct tracker *settled(struct engine *engine, struct tracker *t,
                               const struct frame_in *frame, const struct contrib *contrib)
{
    /* A sender that knows what ends this try means the next operation. */
    bool next = contrib->later_try && tries_settle(engine, t, contrib->settled + 1);
    return next ? tracker_get(engine, frame->sig, frame->siglen) : t;
}

void contribution_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct contrib contrib = {.whole = frame->whole};
    uint32_t from = frame->from;
    read_contrib(&contrib, &frame->in);
    t = frame->in.bad ? t : settled(engine, t, frame, &contrib);
    contrib.slot = t == NULL ? TREE_NONE : tracker_slot_of(t, from);
    engine_hear(engine, contrib.heard);
    if (t != NULL)
        contrib.entries = entries_get(&frame->in, t->tree.n, &contrib.nentries);
    if (contrib.entries == NULL || contrib.slot == TREE_NONE || contrib.slot == t->self)
        log_warning("a contribution of node %u that does not belong here was dropped", from);
    else if (tracker_is_late(engine, t, contrib.known) || is_over(t, contrib.slot, contrib.number))
        log_debug("tracker: a straggler's contribution of node %u was dropped", from);
    else if (is_skipping(engine, t, &contrib)) {
        log_debug("tracker: node %u has not heard that an earlier try has failed", from);
        tries_tell(engine, t, from, contrib.settled);
    } else if (does_not_fit(engine, t, &contrib)) { /* the trees may differ: nothing else counts */
        rollup_refuse(engine, t, contrib.known);
        t = NULL; /* may be gone */
    } else if (!is_sound(t, &contrib)) {
        log_warning("a contribution of node %u that does not belong here was dropped", from);
    } else if (t->state == TRACKER_SENT || t->state == TRACKER_DOUBT) {
        log_debug("tracker: a contribution of node %u came after its subtree was complete", from);
    } else {
        take_contrib(engine, t, &contrib);
        t = NULL; /* may be gone */
    }
    procset_free(&contrib.gone);
    ranges_free(&contrib.missing);
    free(contrib.entries);
    if (t != NULL)
        tracker_tidy(engine, t);
}
