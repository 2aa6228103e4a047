/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions: what goes up the tree.
 *
 * A CONTRIB says how things stand in the sender's whole subtree: which servers are missing there,
 * the first failure, what the calls ask for. The receiver forgets what the same sender said before;
 * so a frame that comes twice counts once. Servers that have contributed are counted, not listed:
 * only contributions that bring something are entries. Their data come with the last frame, when no
 * server is missing any more. The members that they add come earlier, because these have to be told
 * of a failure, too.
 */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 256 /* ranges of slots that are missing: a report names fewer */ };

void rollup_own(struct tracker *t, int32_t status)
{
    if (t->own_status != 0)
        return;
    if (t->news == NEWS_NONE)
        t->news = NEWS_SOME;
    t->own_status = status;
    tracker_fail(t, status);
}

/* Our own contribution, if it brings something. One that is a failure may still add members: they
 * are told of it. */
static bool own_entry(const struct tracker *t, struct engine_entry *entry)
{
    const struct engine_call *call = t->call;
    if (call == NULL)
        return false;
    *entry = (struct engine_entry){t->self, call->data, call->len, call->added, call->addedlen};
    if (t->own_status != 0)
        entry->len = 0;
    return entry->len > 0 || entry->addedlen > 0;
}

uint32_t rollup_flags(const struct tracker *t)
{
    uint32_t flags = t->call != NULL ? t->call->flags : 0;
    for (uint32_t i = 0; i < t->nchildren; i++)
        flags |= t->children[i].flags;
    return flags;
}

static int by_slot(const void *a, const void *b)
{
    const struct engine_entry *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

struct engine_entry *rollup_entries(const struct tracker *t, uint32_t more, uint32_t *n)
{
    uint32_t most = 1 + more;
    for (uint32_t i = 0; i < t->nchildren; i++)
        most += t->children[i].nentries;
    struct engine_entry *entries = calloc(most, sizeof *entries);
    *n = 0;
    if (entries == NULL)
        return NULL;
    *n += own_entry(t, &entries[0]);
    for (uint32_t i = 0; i < t->nchildren; i++) {
        const struct tracker_child *child = &t->children[i];
        struct wire_in in;
        uint32_t count;
        if (child->entries == NULL)
            continue;
        wire_in_init(&in, child->entries->data, child->entries->len);
        struct engine_entry *some = entries_get(&in, t->tree.n, &count);
        if (some == NULL) { /* out of memory: the bytes were checked when they came */
            free(entries);
            *n = 0;
            return NULL;
        }
        if (count > 0)
            memcpy(entries + *n, some, count * sizeof *some);
        *n += count;
        free(some);
    }
    if (*n > 1)
        qsort(entries, *n, sizeof *entries, by_slot);
    return entries;
}

int rollup_added(const struct tracker *t, struct procset *added)
{
    uint32_t n = 0;
    int rc = 0;
    struct engine_entry *entries = rollup_entries(t, 0, &n);
    for (uint32_t i = 0; i < n; i++)
        if (entry_added(&entries[i], added) != 0)
            rc = -1;
    free(entries);
    return entries != NULL ? rc : -1;
}

/* A deadline is one moment for all, however long a contribution waits on its way up. */
static uint64_t time_left(const struct engine *engine, const struct tracker *t)
{
    uint64_t now = engine_clock(engine) + t->grace;
    return t->deadline > now ? t->deadline - now : 0;
}

/* A contribution's fields before those that tell of the subtree. */
static void put_contrib(struct wire_out *out, const struct engine *engine, const struct tracker *t,
                        uint64_t known)
{
    wire_put_u8(out, FRAME_CONTRIB);
    wire_put_block(out, t->sig, t->siglen);
    wire_put_u64(out, known);
    wire_put_u64(out, engine->generations);
    wire_put_u8(out, t->later_try);
    wire_put_u64(out, t->later_try ? tries_known(engine, t, false) : 0);
    wire_put_u64(out, t->call != NULL ? t->number : 0);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, tracker_tree_id(engine, t));
    wire_put_u32(out, t->timeout);
    wire_put_u64(out, time_left(engine, t));
    procset_write(&t->gone, out);
}

/* The contributions of our subtree. @param data whether with their data; else what they add alone:
 * added members have to be told when the operation fails */
static void put_entries(const struct tracker *t, bool data, struct wire_out *out)
{
    uint32_t n = 0, count = 0;
    struct engine_entry *entries = rollup_entries(t, 0, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!data)
            entries[i].len = 0;
        if (entries[i].len > 0 || entries[i].addedlen > 0)
            entries[count++] = entries[i];
    }
    out->failed |= entries == NULL;
    entries_put(out, entries, count);
    free(entries);
}

/* Says where the members are that we and those below us add. */
static void acquaint_added(struct engine *engine, const struct tracker *t)
{
    struct procset added = {0};
    if (engine->env.acquaint != NULL && coll_traits(t->parts.kind)->adds &&
        rollup_added(t, &added) == 0)
        engine_acquaint(engine, tracker_node(t, t->parent), &added);
    procset_free(&added);
}

/* Who was last of our subtree: meaningful when all of it has contributed. Of a child we know when
 * its subtree was complete, and by how much the last one there came after the last but one. That
 * one may have come before others of ours; so the lesser of the two distances counts. Each time is
 * of one clock. */
static struct tracker_who who_was_last(const struct tracker *t)
{
    struct tracker_who who = {t->self, TRACKER_ALONE};
    uint64_t last = t->called, second = 0;
    for (uint32_t i = 0; i < t->nchildren; i++) {
        const struct tracker_child *child = &t->children[i];
        if (child->came >= last) {
            second = last;
            last = child->came;
            who = child->last;
        } else if (child->came > second) {
            second = child->came;
        }
    }
    if (t->nchildren > 0 && last - second < who.us)
        who.us = (uint32_t)(last - second);
    return who;
}

void rollup_note_last(struct engine *engine, const struct tracker *t)
{
    struct tracker_who last = who_was_last(t);
    engine->tally.decided[t->parts.kind]++;
    if (t->tree.n == 1)
        return;
    uint32_t node = tracker_node(t, last.slot);
    tally_last(&engine->tally, t->parts.kind, node, last.us);
    if (t->call != NULL) {
        t->call->last = node;
        t->call->late = last.us;
    }
}

void rollup_up(struct engine *engine, struct tracker *t)
{
    struct wire_out out = {0};
    struct ranges missing = {0};
    /* The contribution of a call that ends in a moment with the failure of an earlier try, or by a
     * success whose data are on their way, would be taken for one to the next operation. */
    if (t->parent == TREE_NONE || t->news == NEWS_NONE || t->settle != 0 || t->data.decided != 0)
        return;
    t->news = NEWS_NONE;
    t->say = 0;
    uint32_t nmissing = tracker_awaited(t, &missing);
    struct tracker_who last = who_was_last(t);
    if (t->later_try)
        tries_tell(engine, t, tracker_node(t, t->parent), 0);
    acquaint_added(engine, t);
    put_contrib(&out, engine, t, t->failure.generation);
    wire_put_i32(&out, t->status);
    wire_put_u32(&out, rollup_flags(t));
    wire_put_u32(&out, last.slot);
    wire_put_u32(&out, last.us);
    wire_put_u32(&out, nmissing);
    ranges_write(&missing, NAMED_MAX, &out);
    ranges_free(&missing);
    put_entries(t, nmissing == 0 && t->status == 0, &out);
    rollup_send(engine, t, t->parent, &out, NULL);
    if (nmissing == 0 && t->status == 0)
        pieces_expect(engine, t);
}

void rollup_tell_root(struct engine *engine, const struct tracker *t, int32_t status,
                      uint64_t known)
{
    struct wire_out out = {0};
    if (t->self == t->tree.root || engine_is_lost(engine, tracker_node(t, t->tree.root)))
        return;
    put_contrib(&out, engine, t, known);
    wire_put_i32(&out, status);
    wire_put_u32(&out, 0); /* flags */
    wire_put_u32(&out, t->self);
    wire_put_u32(&out, TRACKER_ALONE);
    wire_put_u32(&out, 1); /* that server */
    wire_put_u32(&out, 0); /* which is not named */
    wire_put_u32(&out, 0); /* entries */
    rollup_send(engine, t, t->tree.root, &out, NULL);
}
