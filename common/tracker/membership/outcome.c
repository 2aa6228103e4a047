/* SPDX-License-Identifier: BSD-3-Clause */
/* The outcome of an operation, for servers that no release reaches: they are in no tree, or in no
 * tree that the operation has. Also how frames go to such servers.
 */
#include "common/tracker/membership/private.h"

#include <stdlib.h>

/* @param body as in engine_env::send */
static void send_shared(struct engine *engine, uint32_t node, struct wire_out *frame,
                        struct shared_bytes *body)
{
    if (node != engine->env.self) {
        if (!frame->failed && node != ENGINE_NO_HOME && !engine_is_lost(engine, node))
            engine->env.send(engine->env.arg, node, frame, body);
        wire_out_free(frame);
        return;
    }
    if (body != NULL)
        wire_put_raw(frame, body->data, body->len);
    bool good = !frame->failed;
    size_t len;
    unsigned char *bytes = wire_out_take(frame, &len);
    if (good && len > 0)
        engine->up->take(engine, node, (enum frame_type)bytes[0], bytes + 1, len - 1);
    free(bytes);
}

void assembly_send(struct engine *engine, uint32_t node, struct wire_out *frame)
{
    send_shared(engine, node, frame, NULL);
}

void assembly_ping(struct engine *engine, uint32_t node)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_WANTED);
    if (node != engine->env.self)
        assembly_send(engine, node, &out);
    wire_out_free(&out);
}

void outcome_send(struct engine *engine, uint32_t node, const uint64_t *numbers, uint32_t n,
                  struct shared_bytes *bytes)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_OUTCOME);
    wire_put_u32(&out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_u64(&out, numbers[i]);
    out.failed = out.failed || bytes == NULL;
    send_shared(engine, node, &out, bytes);
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

static void tell_member(struct engine *engine, uint32_t node, struct shared_bytes *bytes)
{
    outcome_send(engine, node, NULL, 0, bytes); /* it answers no leader */
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
        decided_tell(engine, d, t, nodes, n, tell_member);
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
