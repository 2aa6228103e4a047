/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation with added members, or a bootstrap, at the server that decides it: it waits for the
 * leaders, claims the added members, waits for these, and decides.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t due_at(const struct assembly *a)
{
    const uint64_t late = (uint64_t)timers_due(a->due.timers, (int64_t)a->deadline);
    return timer_earliest((uint64_t[]){late, a->report, a->repeat}, 3);
}

static void assembly_due(struct assembly *a)
{
    timer_sooner(&a->due, (int64_t)due_at(a));
}

static timer_fire tick;

struct assembly *assembly_new(struct engine *engine, const char *id, struct tracker *t)
{
    struct assembly *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    snprintf(a->id, sizeof a->id, "%s", id);
    a->op = ++engine->numbers;
    a->tracker = t;
    a->opened = engine_now(engine);
    if (t == NULL && engine->env.stall > 0)
        a->report = a->opened + engine->env.stall * 1000ull;
    timer_init(&a->due, engine->env.timers, tick, engine);
    timer_at(&a->due, (int64_t)due_at(a));
    TAILQ_INSERT_TAIL(&engine->membership->assemblies, a, all);
    return a;
}

void assembly_remove(struct engine *engine, struct assembly *a)
{
    TAILQ_REMOVE(&engine->membership->assemblies, a, all);
    timer_stop(&a->due);
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

void assembly_unclaim(struct engine *engine, uint32_t node, uint64_t op)
{
    send_claim(engine, op, "", NULL, &(struct assembly_part){.node = node});
}

/* Claims the members that it has not got yet; those of this server last, for that may end it all.
 */
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

void assembly_lose(struct assembly *a, uint32_t node)
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
        log_error("group \"%s\" construct: an added member is no process of this %s", a->id,
                  log_unit());
        status = engine->env.codes.invalid;
    }
    procset_free(&rest);
    for (uint32_t i = 0; i < a->members.n && status != engine->env.codes.invalid; i++)
        if (engine_is_lost(engine, a->members.v[i].node)) {
            assembly_lose(a, a->members.v[i].node);
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

/* The assembly of the members that the leaders of a construct add. @param status set when that
 * makes no sense @return it, or NULL: no member is added */
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
    if (coll_traits(t->parts.kind)->adds)
        a = t->assembly = assembly_of(engine, t, status);
    if (a != NULL)
        *status = assembly_place(engine, a);
    if (a == NULL || *status != 0 || a->members.n == 0)
        return true;
    a->state = ASSEMBLY_MEMBERS;
    a->repeat = engine_now(engine) + ENGINE_ASK_MS;
    assembly_due(a);
    send_claims(engine, a);
    return false;
}

/* What leaders and members have brought, for a success. @param slot of the first entry */
static void bring(const struct assembly *a, uint32_t slot, struct rollup_more *more)
{
    const struct assembly_parts *const both[] = {&a->leaders, &a->members};
    uint32_t n = 0;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n; i++)
            n += both[k]->v[i].nentries;
    more->entries = calloc(n + 1ul, sizeof *more->entries);
    more->failed = more->entries == NULL;
    for (int k = 0; k < 2 && !more->failed; k++)
        for (uint32_t i = 0; i < both[k]->n; i++) {
            const struct assembly_part *part = &both[k]->v[i];
            more->flags |= part->flags;
            for (uint32_t j = 0; j < part->nentries; j++) {
                more->entries[more->nentries] = part->entries[j];
                more->entries[more->nentries].slot = slot + more->nentries;
                more->nentries++;
            }
        }
}

void assembly_detach(struct engine *engine, struct tracker *t, bool fails, struct rollup_more *more)
{
    struct assembly *a = t->assembly;
    int32_t unused;
    t->assembly = NULL;
    if (a == NULL && fails && coll_traits(t->parts.kind)->adds) {
        a = assembly_of(engine, t, &unused);
        if (a != NULL)
            assembly_place(engine, a);
    }
    if (a == NULL)
        return;
    assembly_remove(engine, a);
    *more = (struct rollup_more){.assembly = a, .op = a->op, .added = &a->added};
    if (!fails)
        bring(a, t->tree.n, more);
}

void assembly_decide(struct engine *engine, struct assembly *a, int32_t status)
{
    struct tracker_release release = {.generation = ++engine->generations, .op = a->op};
    struct engine_result *result = &release.result;
    struct rollup_more more = {0};
    assembly_remove(engine, a);
    if (status == 0)
        bring(a, 0, &more);
    if (more.failed)
        status = engine->env.codes.invalid;
    *result = (struct engine_result){.status = status};
    if (status == 0) {
        *result = (struct engine_result){
            .flags = more.flags, .nentries = more.nentries, .entries = more.entries};
        result->context_id = engine_context_id(engine, result->flags);
        engine->tally.decided[COLL_CONSTRUCT]++;
    } else if (a->state == ASSEMBLY_LEADERS) {
        assembly_place(engine, a);
    }
    assembly_tell(engine, a, NULL, NULL, &release);
    release_end(&release);
    assembly_free(a);
    free(more.entries);
}

void assembly_progress(struct engine *engine, struct assembly *a)
{
    if (a->state == ASSEMBLY_MEMBERS) {
        if (all_joined(a))
            assembly_decide(engine, a, 0);
        return;
    }
    if (procset_size(&a->leading) < a->count)
        return;
    a->state = ASSEMBLY_MEMBERS;
    a->repeat = engine_now(engine) + ENGINE_ASK_MS;
    assembly_due(a);
    int32_t status = assembly_place(engine, a);
    if (status != 0 || a->members.n == 0)
        assembly_decide(engine, a, status);
    else
        send_claims(engine, a);
}

void assembly_go_on(struct engine *engine, struct assembly *a)
{
    if (a->tracker != NULL)
        rollup_progress(engine, a->tracker);
    else
        assembly_progress(engine, a);
}

void assembly_fail(struct engine *engine, struct assembly *a, int32_t status)
{
    if (a->tracker != NULL)
        rollup_decide(engine, a->tracker, status);
    else
        assembly_decide(engine, a, status);
}

void assembly_arm(struct engine *engine, struct assembly *a, uint32_t timeout, uint64_t left)
{
    uint64_t most = timeout * 1000ull;
    uint64_t deadline = engine_clock(engine) + (left < most ? left : most);
    if (a->tracker != NULL)
        tracker_arm(engine, a->tracker, timeout, left);
    else if (timeout != 0 && (a->deadline == 0 || deadline < a->deadline)) {
        a->timeout = timeout;
        a->deadline = deadline;
        assembly_due(a);
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
    engine->env.ranks(engine->env.arg, &sig, nodes, n, true, who, sizeof who);
    snprintf(buf, cap, "group \"%s\" construct: added members have not all called: %s", a->id, who);
    signature_free(&sig);
    free(nodes);
}

void assembly_missing(struct engine *engine, const struct assembly *a, char *buf, size_t cap)
{
    if (a->state == ASSEMBLY_MEMBERS) {
        missing_members(engine, a, buf, cap);
        return;
    }
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = a->leading};
    uint32_t *nodes = calloc(a->leaders.n + 1ul, sizeof *nodes), n = 0;
    char who[512] = "";
    for (uint32_t i = 0; i < a->leaders.n && nodes != NULL; i++)
        if (!nodes_have(nodes, n, a->leaders.v[i].node))
            nodes[n++] = a->leaders.v[i].node;
    engine->env.ranks(engine->env.arg, &sig, nodes, n, false, who, sizeof who);
    uint64_t have = procset_size(&a->leading);
    snprintf(buf, cap,
             "group \"%s\" bootstrap: %" PRIu64 " of %u leaders missing; those here are %s", a->id,
             a->count - have, a->count, who);
    free(nodes);
}

static void tick(void *arg, struct timer *due)
{
    struct engine *engine = arg;
    struct assembly *a = TIMER_OF(due, struct assembly, due);
    uint64_t now = engine_now(engine);
    char text[1024];
    if (!engine_is_due(engine, due, due_at(a)))
        return;
    if (a->deadline != 0 && a->deadline <= engine_clock(engine)) {
        assembly_missing(engine, a, text, sizeof text);
        log_error("timed out after %u s: %s", a->timeout, text);
        assembly_decide(engine, a, engine->env.codes.timeout);
    } else if (a->repeat != 0 && a->repeat <= now) {
        a->repeat = now + ENGINE_ASK_MS;
        send_claims(engine, a);
    } else {
        a->report += engine->env.stall * 1000ull;
        assembly_missing(engine, a, text, sizeof text);
        engine_stalled(engine, a->opened, now, text, NULL, 0);
    }
}
