/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome of an operation, for servers that no release reaches. assembly.c draws it. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>

void outcome_send(struct engine *engine, uint32_t node, const uint64_t *numbers, uint32_t n,
                  struct shared_bytes *bytes)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_OUTCOME);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u64(&out, numbers[i]);
    out.failed = out.failed || bytes == NULL;
    assembly_send_shared(engine, node, &out, bytes);
}

static void tell_one(struct engine *engine, const struct assembly *a, uint32_t node,
                     struct shared_bytes *bytes)
{
    uint64_t *numbers = calloc(a->leaders.n + 1ul, sizeof *numbers);
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->leaders.n && numbers != NULL; i++)
        if (a->leaders.v[i].node == node)
            numbers[n++] = a->leaders.v[i].number;
    outcome_send(engine, node, numbers, n, numbers != NULL ? bytes : NULL);
    free(numbers);
}

/* The servers of leaders and members, each once, without those of @p t's tree; ourselves last. */
static uint32_t whom_to_tell(const struct engine *engine, const struct assembly *a,
                             const struct tracker *t, uint32_t *nodes)
{
    const struct assembly_parts *const both[] = {&a->leaders, &a->members};
    uint32_t n = 0;
    bool own = false;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n; i++) {
            uint32_t node = both[k]->v[i].node;
            if (nodes_have(nodes, n, node) || (t != NULL && tracker_slot_of(t, node) != TREE_NONE))
                continue;
            if (node == engine->env.self)
                own = true;
            else
                nodes[n++] = node;
        }
    if (own)
        nodes[n++] = engine->env.self;
    return n;
}

void assembly_tell(struct engine *engine, struct assembly *a, const struct tracker *t,
                   struct decided *d, struct tracker_release *release)
{
    uint32_t *nodes = calloc(a->leaders.n + a->members.n + 1ul, sizeof *nodes);
    uint32_t n = nodes != NULL ? whom_to_tell(engine, a, t, nodes) : 0;
    struct wire_out sig = {0};
    for (uint32_t i = 0; i < n; i++) {
        engine_acquaint(engine, nodes[i], &a->leading);
        engine_acquaint(engine, nodes[i], &a->added);
    }
    if (d != NULL && n > 0) {
        decided_tell(engine, d, t, nodes, n);
        return;
    }
    signature_write(&sig, COLL_CONSTRUCT, a->id, &a->leading);
    release->op = a->op;
    release->added = &a->added;
    struct shared_bytes *bytes = n > 0 ? release_bytes(release, sig.data, sig.len) : NULL;
    for (uint32_t i = 0; i < n; i++)
        tell_one(engine, a, nodes[i], bytes);
    wire_out_free(&sig);
    free(nodes);
}

/* What an OUTCOME says. */
struct outcome {
    struct release_frame frame;
    struct signature sig;
    struct procset rest;
    uint64_t *numbers;
    uint32_t nnumbers;
};

static bool read_outcome(struct outcome *o, struct wire_in *in)
{
    struct release_frame *frame = &o->frame;
    struct tracker_release *release = &frame->release;
    o->nnumbers = wire_get_count(in, 8);
    o->numbers = calloc(o->nnumbers + 1ul, sizeof *o->numbers);
    for (uint32_t i = 0; o->numbers != NULL && i < o->nnumbers; i++)
        o->numbers[i] = wire_get_u64(in);
    if (in->bad || o->numbers == NULL || !release_read(frame, in->p, (size_t)(in->end - in->p)) ||
        signature_read(&o->sig, frame->sig, frame->siglen) != 0)
        return false;
    procset_except(&o->rest, &frame->added, &o->sig.members);
    procset_unite(&frame->members, &o->sig.members);
    procset_unite(&frame->members, &frame->added);
    release->added = &o->rest;
    release->result.members = release->result.status == 0 ? &frame->members : NULL;
    return true;
}

void member_outcome(struct engine *engine, uint32_t from, struct wire_in *in)
{
    struct outcome o = {0};
    struct waiting *w;
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    if (read_outcome(&o, in)) {
        const struct release_frame *frame = &o.frame;
        const struct tracker_release *release = &frame->release;
        for (uint32_t i = 0; i < o.nnumbers; i++)
            leader_end(engine, from, o.numbers[i], &ended);
        TAILQ_FOREACH (w, &ended, all)
            claim_forgive(engine, from, w->call);
        uint32_t decider = claim_decider(engine, from, release->op, frame->sig, frame->siglen);
        claim_end(engine, decider, o.sig.id, release, &ended);
        member_done(&ended, &release->result);
    } else {
        log_warning("a malformed outcome of node %u was dropped", from);
    }
    signature_free(&o.sig);
    procset_free(&o.rest);
    free(o.numbers);
    release_frame_free(&o.frame);
}
