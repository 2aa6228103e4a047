/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames about an operation to servers of its tree: results on their way down, and questions.
 */
#include "common/tracker/rollup/rollup.h"

void rollup_send(struct engine *engine, const struct tracker *t, uint32_t slot,
                 struct wire_out *out, struct shared_bytes *body)
{
    engine_acquaint(engine, tracker_node(t, slot), &t->parts.members);
    engine->env.send(engine->env.arg, tracker_node(t, slot), out, body);
    wire_out_free(out);
}

/* Sends the server in @p slot a release. */
static void send_release(struct engine *engine, const struct tracker *t, uint32_t slot,
                         struct tracker_release *release, uint64_t number)
{
    struct wire_out out = {0};
    struct shared_bytes *bytes = release_bytes(release, t->sig, t->siglen);
    wire_put_u8(&out, FRAME_RELEASE);
    wire_put_u64(&out, number);
    out.failed = out.failed || bytes == NULL;
    rollup_send(engine, t, slot, &out, bytes);
}

void rollup_kept(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct decided *d, uint64_t number)
{
    struct tracker_release release = {.bytes = d->bytes};
    send_release(engine, t, slot, &release, number);
}

void rollup_tell(struct engine *engine, const struct tracker *t, uint32_t slot,
                 const struct tracker_past *past, uint64_t number)
{
    struct tracker_release failed = {.generation = past->generation, .result = past_result(past)};
    send_release(engine, t, slot, &failed, number);
    release_end(&failed);
}

/* What goes round a lost server may overtake the results before it, which the lost server has not
 * passed on: says those first, as the link keeps the order. */
static void remind(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    const struct decided *d = decided_find(engine, t->sig, t->siglen);
    const struct tracker_past *past = NULL;
    uint64_t known = 0;
    if (tracker_slot_lost(engine, t, slot))
        return;
    if (d != NULL)
        rollup_kept(engine, t, slot, d, 0);
    for (; (past = tracker_past_after(t, known)) != NULL; known = past->generation)
        rollup_tell(engine, t, slot, past, 0);
}

static void release_to(struct engine *engine, struct tracker *t, uint32_t slot,
                       struct tracker_release *release, bool current)
{
    const struct tracker_child *child = current ? tracker_child_of(t, slot) : NULL;
    if (tracker_slot_lost(engine, t, slot)) {
        /* The servers below a lost one are reached from here alone. */
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
    send_release(engine, t, slot, release,
                 child == NULL                 ? 0
                 : release->result.status == 0 ? child->number
                                               : child->call);
}

/* Where settings differ, so do the trees: the root tells every server itself, and no other server
 * does. */
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
    struct shared_bytes *bytes =
        t->nchildren > 1 ? release_bytes(release, t->sig, t->siglen) : NULL;
    if (bytes != NULL)
        bytes->spread = true;
    if (release->result.status != 0 && release->result.status == engine->env.codes.library)
        release_all(engine, t, release, current);
    else
        for (uint32_t i = 0; i < t->nchildren; i++)
            release_to(engine, t, t->children[i].slot, release, current);
}

void rollup_takers(struct engine *engine, struct tracker *t, struct tracker_release *release)
{
    for (uint32_t i = 0; i < TREE_TAKERS; i++) {
        uint32_t slot = tree_taker(&t->tree, t->self, i);
        bool told = t->data.decided == 0 && i == 0; /* a child */
        if (slot != TREE_NONE && !told && !tracker_slot_lost(engine, t, slot))
            send_release(engine, t, slot, release, 0);
    }
}

static void want(struct engine *engine, const struct tracker *t, uint32_t slot, uint64_t known,
                 bool later_try)
{
    struct wire_out out = {0};
    if (slot == TREE_NONE || engine_is_lost(engine, tracker_node(t, slot)))
        return;
    wire_put_u8(&out, FRAME_WANTED);
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, known);
    wire_put_u8(&out, later_try);
    rollup_send(engine, t, slot, &out, NULL);
}

void rollup_want(struct engine *engine, const struct tracker *t, uint32_t slot)
{
    want(engine, t, slot, t->failure.generation, t->later_try);
}

void rollup_ask_on(struct engine *engine, const struct tracker *t, uint64_t known, bool later_try)
{
    for (uint32_t i = 0; i < t->nchildren; i++)
        want(engine, t, t->children[i].slot, known, later_try);
}

void rollup_ask(struct engine *engine, struct tracker *t)
{
    for (uint32_t i = 0; i < t->nchildren; i++) {
        const struct tracker_child *child = &t->children[i];
        if (child->said == CHILD_NOTHING || ranges_have(&child->missing, child->slot))
            rollup_want(engine, t, child->slot);
    }
}
