/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions up the tree, the root's decision, the release down.
 *
 * A CONTRIB says how things stand in the sender's whole subtree: who is missing there, the first
 * failure, what the calls ask for. The receiver forgets what the same sender said before; so what
 * comes twice counts once. Who is there is counted, not listed: only contributions that bring
 * something are entries. Their data come with the last word, when nobody is missing any more; the
 * members that they add are there before, for they have to be told of a failure.
 *
 * CONTRIB: block signature, u64 generation of the last failure that the sender knows, u64 the
 * highest generation of any decision that it has heard of, u8 whether it is a later try, u64
 * generation of the last failure for good that the sender knows of a try before (tries.c), u64
 * number of the sender's call (0: not made yet), u32 library, u32 tree, u32 timeout in s (0: none),
 * u64 ms left of it, processes that are known to be lost, i32 the first failure (0: none), u32
 * flags, u32 servers that are missing, u32 count and ranges of their slots (the first ones), u32
 * count and entries
 * RELEASE: u64 number of the receiver's call (0: it is not known), then as release.c has it
 * WANTED:  block signature, u64 generation of the last failure that the sender knows
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 256 /* ranges of slots that are missing: a report names fewer */ };

/* Others may not have heard yet where the participants are: a construct's result goes to each
 * server by itself, and those that have it go on. */
static void acquaint(const struct engine *engine, const struct tracker *t, uint32_t slot)
{
    engine_acquaint(engine, tracker_node(t, slot), &t->parts.members);
}

void rollup_own(struct tracker *t, int32_t status)
{
    if (t->own)
        return;
    t->own = t->news = true;
    t->own_status = status;
    tracker_fail(t, status);
}

/* Our own contribution, if it brings something. One that is a failure may still add members: they
 * are told of it. */
static bool own_entry(const struct tracker *t, struct engine_entry *entry)
{
    const struct engine_call *call = t->call;
    if (!t->own || call == NULL)
        return false;
    *entry = (struct engine_entry){t->self, call->data, call->len, call->added, call->addedlen};
    if (t->own_status != 0)
        entry->len = 0;
    return entry->len > 0 || entry->addedlen > 0;
}

static uint32_t all_flags(const struct tracker *t)
{
    uint32_t flags = t->own && t->call != NULL ? t->call->flags : 0;
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
        wire_in_init(&in, child->entries, child->len);
        struct engine_entry *some = entries_get(&in, child->nentries, t->tree.n);
        if (some != NULL)
            memcpy(entries + *n, some, child->nentries * sizeof *some);
        *n += some != NULL ? child->nentries : 0;
        free(some);
    }
    if (*n > 1)
        qsort(entries, *n, sizeof *entries, by_slot);
    return entries;
}

/* A deadline is one moment for all, however long a contribution waits on its way up. */
static uint64_t time_left(const struct engine *engine, const struct tracker *t)
{
    uint64_t now = engine->env.now(engine->env.arg) + ENGINE_GRACE_MS;
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
    wire_put_u8(out, t->again);
    wire_put_u64(out, t->again ? tries_known(engine, t, false) : 0);
    wire_put_u64(out, t->call != NULL ? t->number : 0);
    wire_put_u32(out, engine->env.library);
    wire_put_u32(out, tracker_tree_id(engine, t));
    wire_put_u32(out, t->timeout);
    wire_put_u64(out, time_left(engine, t));
    procset_write(&t->gone, out);
}

/* All entries of a subtree that is complete. */
static void put_all(const struct tracker *t, struct wire_out *out)
{
    struct engine_entry own;
    bool any = own_entry(t, &own);
    uint32_t count = any;
    size_t len = any ? ENTRY_BYTES + own.len + own.addedlen : 0;
    for (uint32_t i = 0; i < t->nchildren; i++) {
        count += t->children[i].nentries;
        len += t->children[i].len;
    }
    wire_reserve(out, 4 + len);
    wire_put_u32(out, count);
    if (any)
        entry_put(out, &own);
    for (uint32_t i = 0; i < t->nchildren; i++)
        wire_put_raw(out, t->children[i].entries, t->children[i].len);
}

/* Whom those that are here add: when it fails, these have to be told. */
static void put_added(const struct tracker *t, struct wire_out *out)
{
    uint32_t n = 0, count = 0;
    struct engine_entry *entries = rollup_entries(t, 0, &n);
    size_t at = out->len;
    wire_put_u32(out, 0);
    for (uint32_t i = 0; i < n; i++) {
        if (entries[i].addedlen == 0)
            continue;
        entries[i].len = 0;
        entry_put(out, &entries[i]);
        count++;
    }
    wire_set_u32(out, at, count);
    free(entries);
}

/* Says where the members are that we and those below us add. */
static void acquaint_added(struct engine *engine, const struct tracker *t)
{
    struct procset added = {0};
    if (engine->env.acquaint != NULL && t->parts.kind == COLL_CONSTRUCT &&
        rollup_added(t, &added) == 0)
        engine_acquaint(engine, tracker_node(t, t->parent), &added);
    procset_free(&added);
}

void rollup_up(struct engine *engine, struct tracker *t)
{
    struct wire_out out = {0};
    struct ranges missing = {0};
    if (t->parent == TREE_NONE || !t->news)
        return;
    t->news = t->urgent = false;
    t->say = 0;
    uint32_t nmissing = tracker_awaited(t, &missing);
    acquaint(engine, t, t->parent);
    if (t->again)
        tries_tell(engine, t, tracker_node(t, t->parent), 0);
    acquaint_added(engine, t);
    put_contrib(&out, engine, t, t->failure.generation);
    wire_put_i32(&out, t->status);
    wire_put_u32(&out, all_flags(t));
    wire_put_u32(&out, nmissing);
    ranges_write(&missing, NAMED_MAX, &out);
    ranges_free(&missing);
    if (nmissing == 0 && t->status == 0)
        put_all(t, &out);
    else
        put_added(t, &out);
    engine->env.send(engine->env.arg, tracker_node(t, t->parent), &out, NULL);
    wire_out_free(&out);
}

/* Says to the root itself that a server cannot take part. */
static void tell_root(struct engine *engine, const struct tracker *t, int32_t status,
                      uint64_t known)
{
    uint32_t root = tracker_node(t, t->tree.root);
    struct wire_out out = {0};
    acquaint(engine, t, t->tree.root);
    put_contrib(&out, engine, t, known);
    wire_put_i32(&out, status);
    wire_put_u32(&out, 0); /* flags */
    wire_put_u32(&out, 1); /* that server */
    wire_put_u32(&out, 0); /* which is not named */
    wire_put_u32(&out, 0); /* entries */
    if (t->self != t->tree.root && !engine_is_lost(engine, root))
        engine->env.send(engine->env.arg, root, &out, NULL);
    wire_out_free(&out);
}

void rollup_refuse(struct engine *engine, struct tracker *t, uint64_t known)
{
    if (t->self != t->tree.root) {
        tell_root(engine, t, engine->env.codes.library, known);
        tracker_tidy(engine, t);
        return;
    }
    if (t->state == TRACKER_IDLE)
        tracker_open(engine, t);
    if (tracker_move(engine, t, TRACKER_CHILD))
        rollup_decide(engine, t, engine->env.codes.library);
}

void rollup_release(struct engine *engine, const struct tracker *t, uint32_t slot,
                    struct tracker_release *release, uint64_t number)
{
    struct wire_out out = {0};
    struct shared_bytes *bytes = release_bytes(release, t->sig, t->siglen);
    wire_put_u8(&out, FRAME_RELEASE);
    wire_put_u64(&out, number);
    out.failed = out.failed || bytes == NULL;
    rollup_send(engine, t, slot, &out, bytes);
}

void rollup_send(struct engine *engine, const struct tracker *t, uint32_t slot,
                 struct wire_out *out, struct shared_bytes *body)
{
    acquaint(engine, t, slot);
    engine->env.send(engine->env.arg, tracker_node(t, slot), out, body);
    wire_out_free(out);
}

void rollup_tell(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct tracker_past *past)
{
    struct tracker_release failed = {
        .generation = past->generation,
        .result = {.status = past->debt.status, .gone = &past->debt.gone}};
    rollup_release(engine, t, slot, &failed, 0);
    release_end(&failed);
}

/* What goes round a lost server may overtake the results before it, which that one has not passed
 * on: says those first, as the link keeps the order. */
static void remind(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    const struct decided *d = decided_find(engine, t->sig, t->siglen);
    const struct tracker_past *past = NULL;
    uint64_t known = 0;
    if (tracker_slot_lost(engine, t, slot))
        return;
    if (d != NULL)
        decided_release(engine, d, t, slot, 0);
    for (; (past = tracker_past_after(t, known)) != NULL; known = past->generation)
        rollup_tell(engine, t, slot, past);
}

static void release_to(struct engine *engine, struct tracker *t, uint32_t slot,
                       struct tracker_release *release, bool current)
{
    const struct tracker_child *child = current ? tracker_child_of(t, slot) : NULL;
    if (tracker_slot_lost(engine, t, slot)) {
        /* Nobody else reaches those below it. */
        for (uint32_t i = 0; i < t->tree.arity; i++) {
            uint32_t next = tree_child(&t->tree, slot, i);
            if (next == TREE_NONE)
                break;
            remind(engine, t, next);
            release_to(engine, t, next, release, current);
        }
        return;
    }
    if (release->added != NULL)
        engine_acquaint(engine, tracker_node(t, slot), release->added);
    rollup_release(engine, t, slot, release,
                   child == NULL                 ? 0
                   : release->result.status == 0 ? child->number
                                                 : child->call);
}

/* Where settings differ, so do the trees: the root tells every server itself, and nobody else. */
static void release_all(struct engine *engine, struct tracker *t, struct tracker_release *release,
                        bool current)
{
    for (uint32_t i = 0; t->self == t->tree.root && i < t->tree.n; i++)
        if (i != t->self && !engine_is_lost(engine, tracker_node(t, i)))
            release_to(engine, t, i, release, current);
}

void rollup_down(struct engine *engine, struct tracker *t, struct tracker_release *release,
                 bool current)
{
    if (release->result.status != 0 && release->result.status == engine->env.codes.library)
        release_all(engine, t, release, current);
    else
        for (uint32_t i = 0; i < t->nchildren; i++)
            release_to(engine, t, t->children[i].slot, release, current);
}

static void want(struct engine *engine, const struct tracker *t, uint32_t slot, uint64_t known)
{
    struct wire_out out = {0};
    if (slot == TREE_NONE || engine_is_lost(engine, tracker_node(t, slot)))
        return;
    wire_put_u8(&out, FRAME_WANTED);
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, known);
    rollup_send(engine, t, slot, &out, NULL);
}

void rollup_want(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    want(engine, t, slot, t->failure.generation);
}

void rollup_ask_on(struct engine *engine, const struct tracker *t, uint64_t known)
{
    for (uint32_t i = 0; i < t->nchildren; i++)
        want(engine, t, t->children[i].slot, known);
}

void rollup_ask(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < t->nchildren && t->status == 0; i++) {
        const struct tracker_child *child = &t->children[i];
        if (child->said == CHILD_NOTHING || ranges_have(&child->missing, child->slot))
            rollup_want(engine, t, child->slot);
    }
}

void rollup_ping(struct engine *engine, struct tracker *t)
{
    rollup_want(engine, t, t->parent);
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

/* The contributions of all that have data, for the result; NULL when out of memory. */
static struct engine_entry *all_entries(const struct tracker *t, const struct assembly *a,
                                        uint32_t *flags, uint32_t *n)
{
    uint32_t have, more = a != NULL ? assembly_count(a) : 0;
    struct engine_entry *entries = rollup_entries(t, more, &have);
    *n = 0;
    *flags = all_flags(t);
    if (entries == NULL)
        return NULL;
    for (uint32_t i = 0; i < have; i++) {
        entries[i].added = NULL; /* the release names them all */
        entries[i].addedlen = 0;
        /* A server that lies may have said one twice. */
        if (entries[i].len > 0 && (*n == 0 || entries[*n - 1].slot < entries[i].slot))
            entries[(*n)++] = entries[i];
    }
    if (a != NULL) {
        assembly_entries(a, entries + *n, t->tree.n);
        *n += more;
        *flags |= assembly_flags(a);
    }
    return entries;
}

/* Writes a success. Afterwards nothing of the result is in what came from the children, which is
 * freed before the call is answered. @return whether there was memory */
static bool write_success(struct engine *engine, const struct tracker *t, const struct assembly *a,
                          struct tracker_release *release, struct release_frame *frame)
{
    uint32_t flags, n;
    struct engine_entry *entries = all_entries(t, a, &flags, &n);
    struct engine_result *result = &release->result;
    *result = (struct engine_result){.flags = flags, .nentries = n, .entries = entries};
    result->gone = t->call != NULL ? t->call->gone : NULL;
    result->context_id = engine_context_id(engine, flags);
    frame->entries = entries;
    if (entries == NULL || (t->tree.n < 2 && a == NULL))
        return entries != NULL;
    const struct shared_bytes *bytes = release_bytes(release, t->sig, t->siglen);
    free(entries);
    frame->entries = NULL;
    bool good = bytes != NULL && release_read(frame, bytes->data, bytes->len);
    result->entries = frame->entries;
    return good;
}

void rollup_decide(struct engine *engine, struct tracker *t, int32_t status)
{
    struct tracker_release release = {.generation = ++engine->generations};
    struct release_frame frame = {0};
    struct decided *d = NULL;
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct procset members = {0}, gone = {0};
    /* First: who is added is no participant, and a server that skips this try does not learn which
     * of them are lost. */
    const struct procset *lost = status != 0 ? tracker_take_gone(t, &gone) : NULL;
    struct assembly *a = assembly_detach(engine, t, status != 0, &release);
    if (status == 0 && !write_success(engine, t, a, &release, &frame))
        status = engine->env.codes.invalid;
    if (status != 0) {
        release_end(&release);
        release.result = (struct engine_result){.status = status, .gone = lost};
        t->failure.generation = release.generation;
    } else if (t->parts.kind != COLL_FENCE && t->tree.n > 1) {
        d = decided_keep(engine, t, &release);
    }
    if (a != NULL && status == 0 && assembly_members(&t->parts, &a->added, &members))
        release.result.members = &members;
    rollup_down(engine, t, &release, true);
    if (a != NULL)
        assembly_tell(engine, a, t, d, &release);
    member_take(engine, t, &release, &ended);
    /* After a failure a new call must not meet the old one. */
    if (status == 0)
        member_done(&ended, &release.result);
    tracker_end(engine, t, &release.result);
    member_done(&ended, &release.result);
    procset_free(&members);
    procset_free(&gone);
    release_frame_free(&frame);
    release_end(&release);
    assembly_free(a);
}

/* The parent was told a part: it learns what changes, but not one by one, unless all have less time
 * than it knows. */
static void say_soon(struct engine *engine, struct tracker *t)
{
    if (t->urgent)
        rollup_up(engine, t);
    else if (t->news && t->say == 0)
        t->say = engine->env.now(engine->env.arg) + ENGINE_FLUSH_MS;
    tracker_due(engine, t);
}

void rollup_progress(struct engine *engine, struct tracker *t)
{
    bool complete = tracker_is_complete(t);
    int32_t status = t->status;
    if (t->flush == 0 && !complete)
        t->flush = engine->env.now(engine->env.arg) + ENGINE_FLUSH_MS;
    tracker_due(engine, t);
    if (t->self == t->tree.root) {
        /* One failure is everybody's: nobody waits for the rest. */
        if (status == 0 && complete && !assembly_ready(engine, t, &status))
            return; /* added members are awaited, and t may be gone */
        if (status != 0 || complete)
            rollup_decide(engine, t, status);
        return;
    }
    bool fence = t->parts.kind == COLL_FENCE;
    bool orphan = tracker_slot_lost(engine, t, t->parent);
    if (!fence && (orphan || t->state == TRACKER_SENT || t->state == TRACKER_DOUBT)) {
        doubt_progress(engine, t);
    } else if (orphan) {
        status = tracker_slot_loss(engine, t, t->parent);
        tell_root(engine, t, status, t->failure.generation);
        tracker_give_up(engine, t, status);
    } else if (complete && t->state == TRACKER_GATHER) {
        tracker_move(engine, t, TRACKER_COMPLETE);
        t->flush = engine->env.now(engine->env.arg) + ENGINE_ASK_MS;
        tracker_due(engine, t);
        t->news = true;
        rollup_up(engine, t);
    } else if (status != 0) {
        t->flushed = true;
        rollup_up(engine, t);
        /* Nobody here has a deadline yet, and the word of who decides may be lost. */
        if (t->call == NULL)
            tracker_arm(engine, t, ENGINE_STRAGGLER_MS / 1000, ENGINE_STRAGGLER_MS);
        t->news = false;
    } else if (t->flushed) {
        say_soon(engine, t);
    }
}
