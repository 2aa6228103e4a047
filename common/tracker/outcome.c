/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome of an operation, for servers that no release reaches. assembly.c draws it. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdlib.h>

static void tell_one(struct engine *engine, const struct assembly *a, uint32_t node,
                     const struct engine_result *result, const struct wire_out *sig)
{
    struct wire_out out = {0};
    uint32_t count = 0;
    wire_put_u8(&out, FRAME_OUTCOME);
    wire_put_block(&out, sig->data, sig->len);
    size_t at = out.len;
    wire_put_u32(&out, 0);
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == node) {
            wire_put_u64(&out, a->leaders.v[i].number);
            count++;
        }
    wire_set_u32(&out, at, count);
    wire_put_i32(&out, result->status);
    wire_put_u64(&out, result->context_id);
    wire_put_u64(&out, a->op);
    procset_write(&a->added, &out);
    procset_write(result->gone != NULL ? result->gone : &(struct procset){0}, &out);
    wire_put_u32(&out, result->nentries);
    for (uint32_t i = 0; i < result->nentries; i++)
        entry_put(&out, &result->entries[i]);
    assembly_send(engine, node, &out);
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
                   struct decided *d, const struct engine_result *result)
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
    for (uint32_t i = 0; i < n; i++)
        tell_one(engine, a, nodes[i], result, &sig);
    wire_out_free(&sig);
    free(nodes);
}

/* What an OUTCOME says. */
struct outcome {
    struct tracker_release release;
    struct signature sig;
    const void *bytes; /* of it; borrowed */
    size_t siglen;
    struct procset added, gone, rest, members;
    uint64_t *numbers;
    uint32_t nnumbers;
    struct engine_entry *entries;
};

static bool read_outcome(struct outcome *o, struct wire_in *in)
{
    struct engine_result *result = &o->release.result;
    size_t siglen;
    const void *sig = wire_get_block(in, &siglen);
    bool good = signature_read(&o->sig, sig, siglen) == 0;
    o->bytes = sig;
    o->siglen = siglen;
    o->nnumbers = wire_get_count(in, 8);
    o->numbers = calloc(o->nnumbers + 1ul, sizeof *o->numbers);
    for (uint32_t i = 0; o->numbers != NULL && i < o->nnumbers; i++)
        o->numbers[i] = wire_get_u64(in);
    result->status = wire_get_i32(in);
    result->context_id = wire_get_u64(in);
    o->release.op = wire_get_u64(in);
    procset_read(&o->added, in);
    procset_read(&o->gone, in);
    result->gone = result->status != 0 && o->gone.nparts > 0 ? &o->gone : NULL;
    result->nentries = wire_get_count(in, ENTRY_BYTES);
    result->entries = o->entries = entries_get(in, result->nentries, UINT32_MAX);
    if (result->status != 0)
        good = good && result->nentries == 0 && result->context_id == 0;
    for (uint32_t i = 0; o->entries != NULL && i < result->nentries; i++)
        good = good && o->entries[i].status == 0;
    if (!good || o->entries == NULL || o->numbers == NULL)
        return false;
    procset_except(&o->rest, &o->added, &o->sig.members);
    procset_unite(&o->members, &o->sig.members);
    procset_unite(&o->members, &o->added);
    o->release.added = &o->rest;
    result->members = result->status == 0 ? &o->members : NULL;
    return true;
}

void member_outcome(struct engine *engine, uint32_t from, struct wire_in *in)
{
    struct outcome o = {0};
    struct waiting *w;
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    if (read_outcome(&o, in)) {
        for (uint32_t i = 0; i < o.nnumbers; i++)
            leader_end(engine, from, o.numbers[i], &ended);
        TAILQ_FOREACH (w, &ended, all)
            claim_forgive(engine, from, w->call);
        uint32_t decider = claim_decider(engine, from, o.release.op, o.bytes, o.siglen);
        claim_end(engine, decider, o.sig.id, &o.release, &ended);
        member_done(&ended, &o.release.result);
    } else {
        log_warning("a malformed outcome of node %u was dropped", from);
    }
    signature_free(&o.sig);
    procset_free(&o.added);
    procset_free(&o.gone);
    procset_free(&o.rest);
    procset_free(&o.members);
    free(o.numbers);
    free(o.entries);
}
