/* SPDX-License-Identifier: BSD-3-Clause */
/* Who decides an operation with added members, or a bootstrap: claims, counts, tells.
 *
 * CLAIM:   u64 assembly, str id, members on the receiver (none: there is no such operation any
 *          more), block signature of the leaders' construct (empty: a bootstrap)
 * JOINED:  u64 assembly, u32 library, u32 timeout in s (0: none), u64 ms left of it, i32 status,
 *          u32 flags of all calls, members that are lost, u32 count and entries
 * OUTCOME: u32 count and u64 numbers of the receiver's calls as leaders, then as release.c has it,
 *          with the signature of the leaders' construct
 * leader.c has LEAD.
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct assembly *assembly_new(struct engine *engine, const char *id, struct tracker *t)
{
    struct assembly *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    snprintf(a->id, sizeof a->id, "%s", id);
    a->op = ++engine->numbers;
    a->tracker = t;
    a->opened = engine->env.now(engine->env.arg);
    if (t == NULL && engine->env.stall > 0)
        a->report = a->opened + engine->env.stall * 1000ull;
    TAILQ_INSERT_TAIL(&engine->assemblies, a, all);
    return a;
}

void assembly_free(struct assembly *a)
{
    if (a == NULL)
        return;
    parts_free(&a->leaders);
    parts_free(&a->members);
    procset_free(&a->leading);
    procset_free(&a->added);
    free(a);
}

void assembly_send(struct engine *engine, uint32_t node, struct wire_out *frame)
{
    assembly_send_shared(engine, node, frame, NULL);
}

void assembly_send_shared(struct engine *engine, uint32_t node, struct wire_out *frame,
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
        engine_assembly(engine, node, (enum frame_type)bytes[0], bytes + 1, len - 1);
    free(bytes);
}

void assembly_ping(struct engine *engine, uint32_t node)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_WANTED);
    if (node != engine->env.self)
        assembly_send(engine, node, &out);
    wire_out_free(&out);
}

/* @param t the leaders' rollup; NULL: a bootstrap */
static void send_claim(struct engine *engine, uint64_t op, const char *id, const struct tracker *t,
                       const struct assembly_part *part)
{
    struct wire_out out = {0};
    wire_put_u8(&out, FRAME_CLAIM);
    wire_put_u64(&out, op);
    wire_put_str(&out, id);
    procset_write(&part->procs, &out);
    wire_put_block(&out, t != NULL ? t->sig : NULL, t != NULL ? t->siglen : 0);
    assembly_send(engine, part->node, &out);
}

/* Claims whom it has not got yet; ourselves last, for that may end it all. */
static void send_claims(struct engine *engine, const struct assembly *a)
{
    const struct assembly_part *own = NULL;
    for (uint32_t i = 0; i < a->members.n; i++) {
        const struct assembly_part *part = &a->members.v[i];
        if (part->node == engine->env.self)
            own = part;
        else if (!part->have)
            send_claim(engine, a->op, a->id, a->tracker, part);
    }
    if (own != NULL && !own->have)
        send_claim(engine, a->op, a->id, a->tracker, own);
}

/* Notes the added members of a lost server. */
static void lose(struct assembly *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->members.n && a->tracker != NULL; i++)
        if (a->members.v[i].node == node)
            procset_unite(&a->tracker->gone, &a->members.v[i].procs);
}

int32_t assembly_place(struct engine *engine, struct assembly *a)
{
    struct procset rest = {0};
    int32_t status = 0;
    if (procset_except(&rest, &a->added, &a->leading) != 0 ||
        parts_split(engine, &rest, &a->members) != 0) {
        log_error("group \"%s\" construct: an added member is no process of this step", a->id);
        status = engine->env.codes.invalid;
    }
    procset_free(&rest);
    for (uint32_t i = 0; i < a->members.n && status != engine->env.codes.invalid; i++)
        if (engine_is_lost(engine, a->members.v[i].node)) {
            lose(a, a->members.v[i].node);
            status = tracker_loss(engine, COLL_CONSTRUCT, a->members.v[i].node);
        }
    return status;
}

static bool all_joined(const struct assembly *a)
{
    for (uint32_t i = 0; i < a->members.n; i++)
        if (!a->members.v[i].have)
            return false;
    return true;
}

/* The assembly of whom the leaders of a construct add. @param status set when that makes no sense
 * @return it, or NULL: nobody is added */
static struct assembly *assembly_of(struct engine *engine, struct tracker *t, int32_t *status)
{
    struct procset added = {0};
    struct assembly *a = NULL;
    if (rollup_added(t, &added) != 0)
        *status = engine->env.codes.invalid;
    else if (added.nparts > 0)
        a = assembly_new(engine, t->parts.id, t);
    if (a == NULL) {
        procset_free(&added);
        return NULL;
    }
    a->added = added;
    procset_unite(&a->leading, &t->parts.members);
    return a;
}

bool assembly_ready(struct engine *engine, struct tracker *t, int32_t *status)
{
    struct assembly *a = t->assembly;
    if (a != NULL)
        return all_joined(a);
    if (t->parts.kind == COLL_CONSTRUCT)
        a = t->assembly = assembly_of(engine, t, status);
    if (a != NULL)
        *status = assembly_place(engine, a);
    if (a == NULL || *status != 0 || a->members.n == 0)
        return true;
    a->asked = true;
    a->again = engine->env.now(engine->env.arg) + ENGINE_ASK_MS;
    send_claims(engine, a);
    return false;
}

void assembly_progress(struct engine *engine, struct assembly *a)
{
    if (a->asked) {
        if (all_joined(a))
            assembly_decide(engine, a, 0);
        return;
    }
    if (procset_size(&a->leading) < a->count)
        return;
    a->asked = true;
    a->again = engine->env.now(engine->env.arg) + ENGINE_ASK_MS;
    int32_t status = assembly_place(engine, a);
    if (status != 0 || a->members.n == 0)
        assembly_decide(engine, a, status);
    else
        send_claims(engine, a);
}

uint32_t assembly_count(const struct assembly *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->leaders.n; i++)
        n += a->leaders.v[i].nentries;
    for (uint32_t i = 0; i < a->members.n; i++)
        n += a->members.v[i].nentries;
    return n;
}

void assembly_entries(const struct assembly *a, struct engine_entry *entries, uint32_t slot)
{
    const struct assembly_parts *const both[] = {&a->leaders, &a->members};
    uint32_t n = 0;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n; i++)
            for (uint32_t j = 0; j < both[k]->v[i].nentries; j++) {
                entries[n] = both[k]->v[i].entries[j];
                entries[n].slot = slot + n;
                n++;
            }
}

uint32_t assembly_flags(const struct assembly *a)
{
    uint32_t flags = 0;
    for (uint32_t i = 0; i < a->leaders.n; i++)
        flags |= a->leaders.v[i].flags;
    for (uint32_t i = 0; i < a->members.n; i++)
        flags |= a->members.v[i].flags;
    return flags;
}

struct assembly *assembly_detach(struct engine *engine, struct tracker *t, bool fails,
                                 struct tracker_release *release)
{
    struct assembly *a = t->assembly;
    int32_t unused;
    t->assembly = NULL;
    if (a == NULL && fails && t->parts.kind == COLL_CONSTRUCT) {
        a = assembly_of(engine, t, &unused);
        if (a != NULL)
            assembly_place(engine, a);
    }
    if (a == NULL)
        return NULL;
    TAILQ_REMOVE(&engine->assemblies, a, all);
    release->op = a->op;
    release->added = &a->added;
    return a;
}

void assembly_decide(struct engine *engine, struct assembly *a, int32_t status)
{
    struct tracker_release release = {.generation = ++engine->generations, .op = a->op};
    struct engine_result *result = &release.result;
    uint32_t n = assembly_count(a);
    struct engine_entry *entries = status == 0 ? calloc(n + 1ul, sizeof *entries) : NULL;
    TAILQ_REMOVE(&engine->assemblies, a, all);
    if (status == 0 && entries == NULL)
        status = engine->env.codes.invalid;
    *result = (struct engine_result){.status = status};
    if (status == 0) {
        assembly_entries(a, entries, 0);
        *result =
            (struct engine_result){.flags = assembly_flags(a), .nentries = n, .entries = entries};
        result->context_id = engine_context_id(engine, result->flags);
        home_forget(engine, a->id);
    } else {
        if (!a->asked)
            assembly_place(engine, a);
        home_failed(engine, a, status);
    }
    assembly_tell(engine, a, NULL, NULL, &release);
    release_end(&release);
    assembly_free(a);
    free(entries);
}

static void fail(struct engine *engine, struct assembly *a, int32_t status)
{
    if (a->tracker != NULL)
        rollup_decide(engine, a->tracker, status);
    else
        assembly_decide(engine, a, status);
}

static struct assembly *find(struct engine *engine, uint64_t op)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->assemblies, all)
        if (a->op == op)
            return a;
    return NULL;
}

static void arm(struct engine *engine, struct assembly *a, uint32_t timeout, uint64_t left)
{
    if (a->tracker != NULL)
        tracker_arm(engine, a->tracker, timeout, left);
    else
        home_arm(engine, a, timeout, left);
}

void assembly_joined(struct engine *engine, uint32_t from, struct wire_in *in)
{
    uint64_t op = wire_get_u64(in);
    struct assembly *a = find(engine, op);
    uint32_t library = wire_get_u32(in), timeout = wire_get_u32(in), at = 0;
    uint64_t left = wire_get_u64(in);
    int32_t status = wire_get_i32(in);
    uint32_t flags = wire_get_u32(in);
    struct procset gone = {0};
    procset_read(&gone, in);
    uint32_t n = wire_get_count(in, ENTRY_BYTES);
    struct engine_entry *entries = entries_get(in, n, UINT32_MAX);
    while (a != NULL && at < a->members.n && a->members.v[at].node != from)
        at++;
    if (entries != NULL && a == NULL) { /* it was claimed late: those calls are not for us */
        send_claim(engine, op, "", NULL, &(struct assembly_part){.node = from});
        procset_free(&gone);
        free(entries);
        return;
    }
    if (entries == NULL || a == NULL || at == a->members.n || a->members.v[at].have) {
        log_debug("tracker: node %u's word on its added members was dropped", from);
        procset_free(&gone);
        free(entries);
        return;
    }
    if (library != engine->env.library) {
        log_error("group \"%s\" construct: node %s runs another libpmix than node %s; install one "
                  "version everywhere",
                  a->id, engine->env.name(engine->env.arg, from),
                  engine->env.name(engine->env.arg, engine->env.self));
        status = engine->env.codes.library;
    }
    arm(engine, a, timeout, left);
    if (a->tracker != NULL)
        procset_unite(&a->tracker->gone, &gone);
    procset_free(&gone);
    if (status == 0 && !part_fill(&a->members.v[at], flags, entries, n))
        status = engine->env.codes.invalid;
    free(entries);
    if (status != 0)
        fail(engine, a, status);
    else if (a->tracker != NULL)
        rollup_progress(engine, a->tracker);
    else
        assembly_progress(engine, a);
}

static bool needs(const struct assembly *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->members.n; i++)
        if (a->members.v[i].node == node && !a->members.v[i].have)
            return true;
    for (uint32_t i = 0; i < a->leaders.n; i++)
        if (a->leaders.v[i].node == node)
            return true;
    return false;
}

void assembly_lost(struct engine *engine, uint32_t node)
{
    struct assembly *a;
    bool again = true;
    while (again) {
        again = false;
        TAILQ_FOREACH (a, &engine->assemblies, all)
            if (needs(a, node)) {
                lose(a, node);
                fail(engine, a, tracker_loss(engine, COLL_CONSTRUCT, node));
                again = true;
                break;
            }
    }
}

static void missing_members(struct engine *engine, const struct assembly *a, char *buf, size_t cap)
{
    struct signature sig = {.kind = COLL_CONSTRUCT};
    uint32_t *nodes = calloc(a->members.n + 1ul, sizeof *nodes), n = 0;
    for (uint32_t i = 0; i < a->members.n && nodes != NULL; i++)
        if (!a->members.v[i].have) {
            nodes[n++] = a->members.v[i].node;
            procset_unite(&sig.members, &a->members.v[i].procs);
        }
    char who[512] = "";
    engine->env.missing(engine->env.arg, &sig, nodes, n, who, sizeof who);
    snprintf(buf, cap, "group \"%s\" construct: added members have not all called: %s", a->id, who);
    signature_free(&sig);
    free(nodes);
}

void assembly_missing(struct engine *engine, const struct assembly *a, char *buf, size_t cap)
{
    if (a->asked) {
        missing_members(engine, a, buf, cap);
        return;
    }
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = a->leading};
    uint32_t *nodes = calloc(a->leaders.n + 1ul, sizeof *nodes), n = 0;
    char who[512] = "";
    for (uint32_t i = 0; i < a->leaders.n && nodes != NULL; i++)
        if (!nodes_have(nodes, n, a->leaders.v[i].node))
            nodes[n++] = a->leaders.v[i].node;
    engine->env.missing(engine->env.arg, &sig, nodes, n, who, sizeof who);
    uint64_t have = procset_size(&a->leading);
    snprintf(buf, cap,
             "group \"%s\" bootstrap: %" PRIu64 " of %u leaders missing; those here are %s", a->id,
             a->count - have, a->count, who);
    free(nodes);
}

static uint64_t due_at(const struct assembly *a)
{
    const uint64_t times[] = {a->deadline, a->report, a->again};
    uint64_t at = UINT64_MAX;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] != 0 && times[i] < at)
            at = times[i];
    return at;
}

uint64_t assembly_next(const struct engine *engine)
{
    const struct assembly *a;
    uint64_t at = UINT64_MAX;
    TAILQ_FOREACH (a, &engine->assemblies, all)
        if (due_at(a) < at)
            at = due_at(a);
    return at;
}

static void tick(struct engine *engine, struct assembly *a, uint64_t now)
{
    char text[1024];
    if (a->deadline != 0 && a->deadline <= now) {
        assembly_missing(engine, a, text, sizeof text);
        log_error("timed out after %u s: %s", a->timeout, text);
        assembly_decide(engine, a, engine->env.codes.timeout);
    } else if (a->again != 0 && a->again <= now) {
        a->again = now + ENGINE_ASK_MS;
        send_claims(engine, a);
    } else {
        a->report += engine->env.stall * 1000ull;
        assembly_missing(engine, a, text, sizeof text);
        engine_stalled(engine, a->opened, now, text);
    }
}

bool assembly_tick(struct engine *engine, uint64_t now)
{
    struct assembly *a;
    TAILQ_FOREACH (a, &engine->assemblies, all)
        if (due_at(a) <= now) {
            tick(engine, a, now);
            return true;
        }
    return false;
}

/* Leaders of a bootstrap that lacks some ask for another home as soon as they hear that this one
 * has left (leader_lost()): they are told nothing. */
static bool moves(const struct engine *engine, const struct assembly *a)
{
    return a->tracker == NULL && !a->asked && engine->env.home != NULL;
}

void assembly_close(struct engine *engine)
{
    struct assembly *a;
    while ((a = TAILQ_FIRST(&engine->assemblies)) != NULL)
        if (moves(engine, a)) {
            TAILQ_REMOVE(&engine->assemblies, a, all);
            assembly_free(a);
        } else {
            fail(engine, a, engine->env.codes.closing);
        }
}

void engine_assembly(struct engine *engine, uint32_t from, enum frame_type type, const void *body,
                     size_t len)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    if (engine_is_lost(engine, from) || (engine->closing && type != FRAME_OUTCOME))
        log_debug("tracker: a frame of node %u, which is lost or comes too late, was dropped",
                  from);
    else if (type == FRAME_LEAD)
        home_take(engine, from, &in);
    else if (type == FRAME_CLAIM)
        member_claim(engine, from, &in);
    else if (type == FRAME_JOINED)
        assembly_joined(engine, from, &in);
    else if (type == FRAME_OUTCOME)
        member_outcome(engine, from, &in);
}
