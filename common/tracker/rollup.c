/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions up the tree, the root's decision, the release down.
 *
 * CONTRIB: block signature, u64 generation of the last failure that the sender knows, u64 the
 * highest generation of any failure that it has heard of, u8 whether it is a later try, u64
 * generation of the last failure for good that the sender knows of a try before (tries.c), u64
 * number of the sender's call (0: not made yet), u32 library, u32 tree, u32 timeout in s (0: none),
 * u64 ms left of it, processes that are known to be lost, entries RELEASE: block signature, u64
 * generation (0: it succeeded, or the root has not spoken), u64 number of the receiver's call as it
 * last said (0: it said none), i32 status, u64 context id, u64 assembly (0: nobody was added),
 * added members, processes that are lost, entries WANTED:  block signature, u64 generation of the
 * last failure that the sender knows entries: u32 count, { u32 slot, i32 status, u32 flags, u64
 * number, block data, block added }…
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

/* Others may not have heard yet where the participants are: a construct's result goes to each
 * server by itself, and those that have it go on. */
static void acquaint(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    struct signature sig;
    if (engine->env.acquaint == NULL)
        return;
    if (signature_read(&sig, t->sig, t->siglen) == 0)
        engine_acquaint(engine, t->nodes[slot], &sig.members);
    signature_free(&sig);
}

static struct engine_entry entry_of(const struct tracker *t, uint32_t slot)
{
    const struct tracker_slot *s = &t->slots[slot];
    return (struct engine_entry){slot,   s->status, s->flags,    s->data,
                                 s->len, s->added,  s->addedlen, s->number};
}

bool rollup_put(struct tracker *t, const struct engine_entry *entry)
{
    struct tracker_slot *s = &t->slots[entry->slot];
    if (s->have && t->self == t->tree.root && s->status == 0 && entry->status != 0) {
        s->status = entry->status; /* a server that would not hear of a success */
        return true;
    }
    if (s->have)
        return false;
    if (entry->len > 0 || entry->addedlen > 0) {
        s->data = malloc(entry->len + 1);
        s->added = malloc(entry->addedlen + 1);
        if (s->data == NULL || s->added == NULL) {
            free(s->data);
            free(s->added);
            s->data = s->added = NULL;
            return false;
        }
        if (entry->len > 0)
            memcpy(s->data, entry->data, entry->len);
        if (entry->addedlen > 0)
            memcpy(s->added, entry->added, entry->addedlen);
    }
    s->have = true;
    s->status = entry->status;
    s->flags = entry->flags;
    s->len = entry->len;
    s->addedlen = entry->addedlen;
    s->number = entry->number;
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
    wire_put_u64(out, engine->generations);
    wire_put_u8(out, t->again);
    wire_put_u64(out, t->again ? tries_known(engine, t, false) : 0);
    wire_put_u64(out, t->call != NULL ? t->number : 0);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, tracker_tree_id(engine, t));
    wire_put_u32(out, t->timeout);
    wire_put_u64(out, time_left(engine, t));
    procset_write(&t->gone, out);
}

void rollup_up(struct engine *engine, struct tracker *t)
{
    struct wire_out out = {0};
    uint32_t count = 0;
    uint32_t parent = tree_parent(&t->tree, t->self);
    if (parent != TREE_NONE)
        acquaint(engine, t, parent);
    if (parent != TREE_NONE && t->again)
        tries_tell(engine, t, t->nodes[parent], 0);
    put_contrib(&out, engine, t, t->failure.generation);
    size_t at = out.len;
    wire_put_u32(&out, 0);
    for (uint32_t i = 0; i < t->tree.n; i++) {
        if (!t->slots[i].have || t->slots[i].sent)
            continue;
        struct engine_entry entry = entry_of(t, i);
        if (parent != TREE_NONE)
            entry_acquaint(engine, t->nodes[parent], &entry);
        entry_put(&out, &entry);
        t->slots[i].sent = true;
        count++;
    }
    wire_set_u32(&out, at, count);
    if (count > 0 && parent != TREE_NONE)
        engine->env.send(engine->env.arg, t->nodes[parent], &out, NULL);
    wire_out_free(&out);
}

/* Says to the root itself that the server in @p slot cannot take part. */
static void tell_root(struct engine *engine, const struct tracker *t, uint32_t slot, int32_t status,
                      uint64_t known)
{
    struct engine_entry entry = {.slot = slot, .status = status};
    struct wire_out out = {0};
    acquaint(engine, t, t->tree.root);
    put_contrib(&out, engine, t, known);
    wire_put_u32(&out, 1);
    entry_put(&out, &entry);
    if (t->self != t->tree.root && !engine_is_lost(engine, t->nodes[t->tree.root]))
        engine->env.send(engine->env.arg, t->nodes[t->tree.root], &out, NULL);
    wire_out_free(&out);
}

void rollup_refuse(struct engine *engine, struct tracker *t, uint32_t slot, uint64_t known)
{
    if (t->self != t->tree.root) {
        tell_root(engine, t, slot, engine->env.codes.library, known);
        tracker_tidy(engine, t);
        return;
    }
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (t->slots != NULL && tracker_move(engine, t, TRACKER_CHILD))
        rollup_decide(engine, t, engine->env.codes.library);
}

void rollup_write(const struct tracker *t, const struct tracker_release *release, uint64_t number,
                  struct wire_out *out)
{
    const struct engine_result *result = &release->result;
    const struct procset nobody = {0};
    wire_put_u8(out, FRAME_RELEASE);
    wire_put_block(out, t->sig, t->siglen);
    wire_put_u64(out, release->generation);
    wire_put_u64(out, number);
    wire_put_i32(out, result->status);
    wire_put_u64(out, result->context_id);
    wire_put_u64(out, release->op);
    procset_write(release->added != NULL ? release->added : &nobody, out);
    procset_write(result->gone != NULL ? result->gone : &nobody, out);
    wire_put_u32(out, result->nentries);
    for (uint32_t i = 0; i < result->nentries; i++)
        entry_put(out, &result->entries[i]);
}

void rollup_send(struct engine *engine, const struct tracker *t, uint32_t slot,
                 struct wire_out *out)
{
    acquaint(engine, t, slot);
    engine->env.send(engine->env.arg, t->nodes[slot], out, NULL);
    wire_out_free(out);
}

void rollup_tell(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct tracker_past *past)
{
    struct wire_out out = {0};
    const struct tracker_release failed = {
        .generation = past->generation,
        .result = {.status = past->debt.status, .gone = &past->debt.gone}};
    rollup_write(t, &failed, 0, &out);
    rollup_send(engine, t, slot, &out);
}

/* What goes round a lost server may overtake the results before it, which that one has not passed
 * on: says those first, as the link keeps the order. */
static void remind(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    const struct decided *d = decided_find(engine, t->sig, t->siglen);
    const struct tracker_past *past = NULL;
    struct wire_out out = {0};
    uint64_t number = d != NULL ? decided_number(d, slot) : 0, known = 0;
    if (tracker_slot_lost(engine, t, slot))
        return;
    if (number != 0) {
        decided_release(d, number, &out);
        rollup_send(engine, t, slot, &out);
    }
    for (; (past = tracker_past_after(t, known)) != NULL; known = past->generation)
        rollup_tell(engine, t, slot, past);
}

static void release_to(struct engine *engine, struct tracker *t, uint32_t slot,
                       const struct tracker_release *release, bool current)
{
    struct wire_out out = {0};
    if (tracker_slot_lost(engine, t, slot)) {
        /* Nobody else reaches those below it. */
        for (uint32_t i = 0; i < t->tree.arity; i++) {
            uint32_t child = tree_child(&t->tree, slot, i);
            if (child == TREE_NONE)
                break;
            remind(engine, t, child);
            release_to(engine, t, child, release, current);
        }
        return;
    }
    if (release->added != NULL)
        engine_acquaint(engine, t->nodes[slot], release->added);
    rollup_write(t, release, current && t->slots != NULL ? t->slots[slot].call : 0, &out);
    rollup_send(engine, t, slot, &out);
}

/* Where settings differ, so do the trees: the root tells every server itself, and nobody else. */
static void release_all(struct engine *engine, struct tracker *t,
                        const struct tracker_release *release, bool current)
{
    for (uint32_t i = 0; t->self == t->tree.root && i < t->tree.n; i++)
        if (i != t->self && !engine_is_lost(engine, t->nodes[i]))
            release_to(engine, t, i, release, current);
}

void rollup_down(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 bool current)
{
    if (release->result.status != 0 && release->result.status == engine->env.codes.library) {
        release_all(engine, t, release, current);
        return;
    }
    for (uint32_t i = 0; i < t->tree.arity; i++) {
        uint32_t child = tree_child(&t->tree, t->self, i);
        if (child == TREE_NONE)
            break;
        release_to(engine, t, child, release, current);
    }
}

static void want(struct engine *engine, const struct tracker *t, uint32_t slot, uint64_t known)
{
    struct wire_out out = {0};
    if (slot == TREE_NONE || engine_is_lost(engine, t->nodes[slot]))
        return;
    wire_put_u8(&out, FRAME_WANTED);
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, known);
    rollup_send(engine, t, slot, &out);
}

void rollup_want(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    want(engine, t, slot, t->failure.generation);
}

void rollup_ask_on(struct engine *engine, const struct tracker *t, uint64_t known)
{
    for (uint32_t i = 0; i < t->tree.arity; i++) {
        uint32_t child = tree_child(&t->tree, t->self, i);
        if (child == TREE_NONE)
            break;
        want(engine, t, child, known);
    }
}

void rollup_ask(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < t->tree.arity; i++) {
        uint32_t child = tree_child(&t->tree, t->self, i);
        if (child == TREE_NONE)
            break;
        if (!t->slots[child].have)
            rollup_want(engine, t, child);
    }
}

void rollup_ping(struct engine *engine, struct tracker *t)
{
    rollup_want(engine, t, tree_parent(&t->tree, t->self));
}

/* The contributions of all, for the result; NULL when out of memory. */
static struct engine_entry *all_entries(const struct tracker *t, uint32_t *flags, uint32_t *n)
{
    uint32_t more = t->assembly != NULL ? assembly_count(t->assembly) : 0;
    struct engine_entry *entries = calloc(t->tree.n + more, sizeof *entries);
    *n = entries == NULL ? 0 : t->tree.n + more;
    for (uint32_t i = 0; i < *n && i < t->tree.n; i++) {
        entries[i] = entry_of(t, i);
        entries[i].added = NULL; /* the release names them all */
        entries[i].addedlen = 0;
    }
    if (entries != NULL && more > 0)
        assembly_entries(t->assembly, entries + t->tree.n, t->tree.n);
    for (uint32_t i = 0; i < *n; i++)
        *flags |= entries[i].flags;
    return entries;
}

int rollup_added(const struct tracker *t, struct procset *added)
{
    int rc = 0;
    for (uint32_t i = 0; i < t->tree.n; i++) {
        struct engine_entry entry = entry_of(t, i);
        if (entry_added(&entry, added) != 0)
            rc = -1;
    }
    return rc;
}

/* What was decided here, for those who ask for it. */
static struct decided *keep(struct engine *engine, const struct tracker *t,
                            const struct tracker_release *release)
{
    struct wire_out out = {0};
    if (signature_kind(t->sig, t->siglen) == COLL_FENCE || t->tree.n < 2)
        return NULL; /* before it is written: it may be long */
    rollup_write(t, release, 0, &out);
    struct decided *d =
        out.failed ? NULL : decided_keep(engine, t, out.data + 1, out.len - 1, release->op);
    wire_out_free(&out);
    return d;
}

void rollup_decide(struct engine *engine, struct tracker *t, int32_t status)
{
    uint32_t flags = 0, n = 0;
    struct engine_entry *entries = status == 0 ? all_entries(t, &flags, &n) : NULL;
    if (status == 0 && entries == NULL)
        status = engine->env.codes.invalid;
    struct tracker_release release = {.result.status = status};
    struct procset gone = {0};
    if (status == 0) {
        release.result.entries = entries;
        release.result.nentries = n;
        release.result.context_id = engine_context_id(engine, flags);
    } else {
        release.result.gone = tracker_take_gone(t, &gone);
        release.generation = ++engine->generations;
        t->failure.generation = release.generation;
    }
    struct assembly *a = assembly_detach(engine, t, &release);
    struct decided *d = status == 0 ? keep(engine, t, &release) : NULL;
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct procset members = {0};
    if (a != NULL && status == 0 && assembly_members(t->sig, t->siglen, &a->added, &members))
        release.result.members = &members;
    rollup_down(engine, t, &release, true);
    if (a != NULL)
        assembly_tell(engine, a, t, d, &release.result);
    member_take(engine, t, &release, &ended);
    /* tracker_end() frees the entries; after a failure a new call must not meet the old one. */
    if (status == 0)
        member_done(&ended, &release.result);
    tracker_end(engine, t, &release.result);
    member_done(&ended, &release.result);
    procset_free(&members);
    procset_free(&gone);
    assembly_free(a);
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
        if (status == 0 && complete && !assembly_ready(engine, t, &status))
            return; /* added members are awaited, and t may be gone */
        if (status != 0 || complete)
            rollup_decide(engine, t, status);
        return;
    }
    bool fence = signature_kind(t->sig, t->siglen) == COLL_FENCE;
    bool orphan = tracker_slot_lost(engine, t, tree_parent(&t->tree, t->self));
    if (!fence && (orphan || t->state == TRACKER_SENT || t->state == TRACKER_DOUBT)) {
        doubt_progress(engine, t);
    } else if (orphan) {
        status = tracker_slot_loss(engine, t, tree_parent(&t->tree, t->self));
        tell_root(engine, t, t->self, status, t->failure.generation);
        tracker_give_up(engine, t, status);
    } else if (complete && t->state == TRACKER_GATHER) {
        tracker_move(engine, t, TRACKER_COMPLETE);
        t->flush = engine->env.now(engine->env.arg) + ENGINE_ASK_MS;
        rollup_up(engine, t);
    } else if (status != 0 || t->flushed) {
        t->flushed = true;
        rollup_up(engine, t);
        /* Nobody here has a deadline yet, and the word of who decides may be lost. */
        if (status != 0 && t->call == NULL)
            tracker_arm(engine, t, ENGINE_STRAGGLER_MS / 1000, ENGINE_STRAGGLER_MS);
    }
}
