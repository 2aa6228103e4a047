/* Contributions up the tree, the root's decision, the release down.
 *
 * CONTRIB: block signature, u64 generation of the last failure that the sender knows, u64 number
 *          of the sender's call (0: not made yet), u32 library, u32 arity, u32 timeout in s
 *          (0: none), u64 ms left of it, entries
 * RELEASE: block signature, u64 generation (0: it succeeded, or the root has not spoken), u64
 *          number of the receiver's call as it last said (0: it said none), i32 status, u64
 *          context id, entries
 * WANTED:  block signature, u64 generation of the last failure that the sender knows
 * entries: u32 count, { u32 slot, i32 status, u32 flags, block data }…
 */
#include "common/tracker/tracker.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

static void put_entry(struct wire_out *out, const struct engine_entry *entry)
{
    wire_put_u32(out, entry->slot);
    wire_put_i32(out, entry->status);
    wire_put_u32(out, entry->flags);
    wire_put_block(out, entry->data, entry->len);
}

static struct engine_entry entry_of(const struct tracker *t, uint32_t slot)
{
    const struct tracker_slot *s = &t->slots[slot];
    return (struct engine_entry){slot, s->status, s->flags, s->data, s->len};
}

bool rollup_put(struct tracker *t, const struct engine_entry *entry)
{
    struct tracker_slot *s = &t->slots[entry->slot];
    if (s->have)
        return false;
    if (entry->len > 0) {
        s->data = malloc(entry->len);
        if (s->data == NULL)
            return false;
        memcpy(s->data, entry->data, entry->len);
    }
    s->have = true;
    s->status = entry->status;
    s->flags = entry->flags;
    s->len = entry->len;
    return true;
}

/* A deadline is one moment for all, however long a contribution waits on its way up. */
static uint64_t time_left(const struct engine *engine, const struct tracker *t)
{
    uint64_t now = engine->env.now(engine->env.arg) + ENGINE_GRACE_MS;
    return t->deadline > now ? t->deadline - now : 0;
}

/* A contribution's fields before its entries. */
static void put_contrib(struct wire_out *out, const struct engine *engine, const struct tracker *t,
                        uint64_t known)
{
    wire_put_u8(out, FRAME_CONTRIB);
    wire_put_block(out, t->sig, t->siglen);
    wire_put_u64(out, known);
    wire_put_u64(out, t->call != NULL ? t->number : 0);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, engine->env.arity);
    wire_put_u32(out, t->timeout);
    wire_put_u64(out, time_left(engine, t));
}

void rollup_up(struct engine *engine, struct tracker *t)
{
    struct wire_out out = {0};
    uint32_t count = 0;
    put_contrib(&out, engine, t, t->failure.generation);
    size_t at = out.len;
    wire_put_u32(&out, 0);
    for (uint32_t i = 0; i < t->tree.n; i++) {
        if (!t->slots[i].have || t->slots[i].sent)
            continue;
        struct engine_entry entry = entry_of(t, i);
        put_entry(&out, &entry);
        t->slots[i].sent = true;
        count++;
    }
    wire_set_u32(&out, at, count);
    uint32_t parent = tree_parent(&t->tree, t->self);
    if (count > 0 && parent != TREE_NONE)
        engine->env.send(engine->env.arg, t->nodes[parent], &out);
    wire_out_free(&out);
}

void rollup_refuse(struct engine *engine, struct tracker *t, uint32_t slot, uint64_t known)
{
    struct engine_entry entry = {.slot = slot, .status = engine->env.codes.library};
    struct wire_out out = {0};
    if (t->self != t->tree.root) {
        put_contrib(&out, engine, t, known);
        wire_put_u32(&out, 1);
        put_entry(&out, &entry);
        if (!tracker_node_lost(engine, t->nodes[t->tree.root]))
            engine->env.send(engine->env.arg, t->nodes[t->tree.root], &out);
        wire_out_free(&out);
        tracker_tidy(engine, t);
        return;
    }
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (t->slots != NULL && tracker_move(engine, t, TRACKER_CHILD))
        rollup_decide(engine, t, entry.status);
}

static void release_to(struct engine *engine, struct tracker *t, uint32_t slot,
                       const struct tracker_release *release, bool current)
{
    const struct engine_result *result = &release->result;
    struct wire_out out = {0};
    if (tracker_node_lost(engine, t->nodes[slot])) {
        /* Nobody else reaches those below it. */
        for (uint32_t i = 0; i < t->tree.arity; i++) {
            uint32_t child = tree_child(&t->tree, slot, i);
            if (child == TREE_NONE)
                break;
            release_to(engine, t, child, release, current);
        }
        return;
    }
    wire_put_u8(&out, FRAME_RELEASE);
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, release->generation);
    wire_put_u64(&out, current && t->slots != NULL ? t->slots[slot].call : 0);
    wire_put_i32(&out, result->status);
    wire_put_u64(&out, result->context_id);
    wire_put_u32(&out, result->nentries);
    for (uint32_t i = 0; i < result->nentries; i++)
        put_entry(&out, &result->entries[i]);
    engine->env.send(engine->env.arg, t->nodes[slot], &out);
    wire_out_free(&out);
}

void rollup_down(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 bool current)
{
    for (uint32_t i = 0; i < t->tree.arity; i++) {
        uint32_t child = tree_child(&t->tree, t->self, i);
        if (child == TREE_NONE)
            break;
        release_to(engine, t, child, release, current);
    }
}

void rollup_ask(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < t->tree.arity; i++) {
        uint32_t child = tree_child(&t->tree, t->self, i);
        struct wire_out out = {0};
        if (child == TREE_NONE)
            break;
        if (t->slots[child].have || tracker_node_lost(engine, t->nodes[child]))
            continue;
        wire_put_u8(&out, FRAME_WANTED);
        wire_put_block(&out, t->sig, t->siglen);
        wire_put_u64(&out, t->failure.generation);
        engine->env.send(engine->env.arg, t->nodes[child], &out);
        wire_out_free(&out);
    }
}

/* To every server at once: where the settings differ, so do the trees. */
static void release_all(struct engine *engine, struct tracker *t,
                        const struct tracker_release *release)
{
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (i != t->self && !tracker_node_lost(engine, t->nodes[i]))
            release_to(engine, t, i, release, true);
}

/* The contributions of all, for the result; NULL when out of memory. */
static struct engine_entry *all_entries(const struct tracker *t, uint32_t *flags)
{
    struct engine_entry *entries = calloc(t->tree.n, sizeof *entries);
    for (uint32_t i = 0; entries != NULL && i < t->tree.n; i++) {
        entries[i] = entry_of(t, i);
        *flags |= entries[i].flags;
    }
    return entries;
}

void rollup_decide(struct engine *engine, struct tracker *t, int32_t status)
{
    uint32_t flags = 0;
    struct engine_entry *entries = status == 0 ? all_entries(t, &flags) : NULL;
    if (status == 0 && entries == NULL)
        status = engine->env.codes.invalid;
    struct tracker_release release = {.result.status = status};
    if (status == 0) {
        release.result.entries = entries;
        release.result.nentries = t->tree.n;
        if (flags & ENGINE_WANT_CONTEXT_ID) {
            engine->next_id += engine->env.id_step;
            release.result.context_id = engine->next_id;
        }
    } else {
        release.generation = ++engine->generations;
        t->failure.generation = release.generation;
    }
    if (status != 0 && status == engine->env.codes.library)
        release_all(engine, t, &release);
    else
        rollup_down(engine, t, &release, true);
    tracker_end(engine, t, &release.result);
    free(entries);
}

void rollup_progress(struct engine *engine, struct tracker *t)
{
    bool complete = true;
    int32_t status = 0;
    for (uint32_t i = 0; i < t->tree.n; i++) {
        if (!t->slots[i].have && tree_below(&t->tree, t->self, i))
            complete = false;
        if (t->slots[i].have && t->slots[i].status != 0 && status == 0)
            status = t->slots[i].status;
    }
    if (t->flush == 0 && !complete)
        t->flush = engine->env.now(engine->env.arg) + ENGINE_FLUSH_MS;
    if (t->self == t->tree.root) {
        /* One failure is everybody's: nobody waits for the rest. */
        if (status != 0 || complete)
            rollup_decide(engine, t, status);
        return;
    }
    if (tracker_node_lost(engine, t->nodes[tree_parent(&t->tree, t->self)])) {
        tracker_give_up(engine, t, engine->env.codes.lost);
    } else if (complete && t->state == TRACKER_GATHER) {
        tracker_move(engine, t, TRACKER_COMPLETE);
        t->flush = 0;
        rollup_up(engine, t);
    } else if (status != 0 || t->flushed) {
        t->flushed = true;
        rollup_up(engine, t);
    }
}
