/* SPDX-License-Identifier: BSD-3-Clause */
/* Who of this server is awaited, and by whom.
 *
 * A call whose process is not known by name (libpmix does not always say) stands for any added
 * member of this server. So a claim takes its calls all at once, when there are as many as it has
 * members: first those that are named in it, then nameless ones.
 */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool waiting_is_named(const struct waiting *w)
{
    return w->call->caller->nparts > 0;
}

static bool has_caller(const struct procset *set, const struct engine_call *call)
{
    const struct procset *caller = call->caller;
    return caller->nparts > 0 &&
           procset_has(set, caller->parts[0].nspace, caller->parts[0].ranges[0].first);
}

struct claim *claim_find(struct engine *engine, uint32_t decider, uint64_t op)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->decider == decider && claim->op == op)
            return claim;
    return NULL;
}

/* Takes over the bytes of @p members. */
static struct claim *claim_new(struct engine *engine, uint32_t decider, uint64_t op, const char *id,
                               struct procset *members)
{
    struct claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    claim->decider = decider;
    claim->op = op;
    snprintf(claim->id, sizeof claim->id, "%s", id);
    claim->members = *members;
    *members = (struct procset){0};
    claim->left = procset_size(&claim->members);
    TAILQ_INSERT_TAIL(&engine->claims, claim, all);
    return claim;
}

void claim_free(struct engine *engine, struct claim *claim)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->claim == claim)
            w->claim = NULL;
    TAILQ_REMOVE(&engine->claims, claim, all);
    procset_free(&claim->members);
    procset_free(&claim->answered);
    procset_free(&claim->gone);
    free(claim->sig);
    free(claim);
}

/* Whether @p w may be one that @p claim awaits, as far as is known. */
bool claim_wants(const struct claim *claim, const struct waiting *w)
{
    return strcmp(claim->id, w->call->id) == 0 &&
           (!waiting_is_named(w) ||
            (has_caller(&claim->members, w->call) && !has_caller(&claim->answered, w->call)));
}

/* Gives a claim the calls that fit, besides those that it has. @return how many it has */
static uint64_t fill(struct engine *engine, struct claim *claim)
{
    struct procset taken = {0};
    struct waiting *w;
    uint64_t n = 0;
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->claim == claim) {
            n++;
            if (waiting_is_named(w))
                procset_unite(&taken, w->call->caller);
        }
    for (int named = 1; named >= 0; named--)
        TAILQ_FOREACH (w, &engine->joins, all) {
            if (w->claim != NULL || waiting_is_named(w) != named || n == claim->left ||
                !claim_wants(claim, w) || has_caller(&taken, w->call))
                continue;
            w->claim = claim;
            n++;
            if (named)
                procset_unite(&taken, w->call->caller);
        }
    procset_free(&taken);
    return n;
}

static void unfill(struct engine *engine, const struct claim *claim)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->claim == claim)
            w->claim = NULL;
}

/* Tells who decides, with the calls' contributions when all is well. */
void claim_tell(struct engine *engine, struct claim *claim, int32_t status)
{
    uint64_t now = engine->env.now(engine->env.arg), left = 0;
    uint32_t timeout = 0, n = 0, flags = 0;
    const struct waiting *w;
    struct wire_out out = {0}, entries = {0};
    struct procset gone = {0};
    claim->state = CLAIM_TOLD;
    claim->ask = now + ENGINE_ASK_MS;
    TAILQ_FOREACH (w, &engine->joins, all) {
        if (w->claim != claim)
            continue;
        struct engine_entry entry = {.slot = n, .data = w->call->data, .len = w->call->len};
        if (status == 0)
            status = w->call->status;
        flags |= w->call->flags;
        if (entry.len > 0) {
            entry_put(&entries, &entry);
            n++;
        }
        uint64_t end = w->deadline - ENGINE_GRACE_MS;
        if (w->deadline != 0 && (timeout == 0 || end < now + left)) {
            timeout = w->call->timeout;
            left = end > now ? end - now : 0;
        }
    }
    wire_put_u8(&out, FRAME_JOINED);
    wire_put_u64(&out, claim->op);
    wire_put_u32(&out, engine->env.library);
    wire_put_u32(&out, timeout);
    wire_put_u64(&out, left);
    wire_put_i32(&out, status);
    wire_put_u32(&out, flags);
    if (status != 0) {
        struct signature sig = {.kind = COLL_CONSTRUCT, .members = claim->members};
        engine->env.local_gone(engine->env.arg, &sig, &gone);
        if (engine->closing)
            procset_unite(&gone, &claim->members);
    }
    procset_write(&gone, &out);
    procset_free(&gone);
    wire_put_u32(&out, n);
    wire_put_raw(&out, entries.data, entries.len);
    if (entries.failed)
        out.failed = true;
    wire_out_free(&entries);
    assembly_send(engine, claim->decider, &out); /* may end it all */
}

/* Why members of this server cannot join, or 0. */
static int32_t local_status(const struct engine *engine, const struct claim *claim)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = claim->members};
    snprintf(sig.id, sizeof sig.id, "%s", claim->id);
    return engine->env.local_status(engine->env.arg, &sig);
}

/* Joins when all have called, or says that one cannot. May end it all, this claim and others.
 * @return whether there was something to tell */
static bool try_one(struct engine *engine, struct claim *claim)
{
    struct waiting *w;
    if (fill(engine, claim) < claim->left) {
        unfill(engine, claim);
        int32_t status = local_status(engine, claim);
        if (status != 0)
            claim_tell(engine, claim, status);
        return status != 0;
    }
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->claim == claim && w->deadline != 0)
            w->deadline += ENGINE_GRACE_MS; /* the word of who decides comes first */
    claim_tell(engine, claim, 0);
    return true;
}

void claim_try(struct engine *engine, const char *borrowed)
{
    struct claim *claim = TAILQ_FIRST(&engine->claims);
    char id[PROCSET_NAME_MAX + 1]; /* whose call it is of may be answered */
    snprintf(id, sizeof id, "%s", borrowed);
    while (claim != NULL) {
        bool told =
            claim->state == CLAIM_OPEN && strcmp(claim->id, id) == 0 && try_one(engine, claim);
        claim = told ? TAILQ_FIRST(&engine->claims) : TAILQ_NEXT(claim, all);
    }
}

/* Who decides knows of no such operation any more: its calls are free for others. */
static void unclaim(struct engine *engine, uint32_t from, uint64_t op)
{
    struct claim *claim = claim_find(engine, from, op);
    char id[PROCSET_NAME_MAX + 1];
    if (claim == NULL || claim->state == CLAIM_OWED)
        return;
    memcpy(id, claim->id, sizeof id);
    claim_free(engine, claim);
    claim_try(engine, id);
}

/* Who has ended calls no more: no more is owed than there are others. */
static void owe_the_living(struct engine *engine, struct claim *claim)
{
    struct procset rest = {0};
    uint64_t n = 0;
    procset_except(&rest, &claim->members, &claim->answered);
    for (uint32_t i = 0; i < rest.nparts; i++)
        for (uint32_t j = 0; j < rest.parts[i].nranges; j++)
            for (uint64_t rank = rest.parts[i].ranges[j].first;
                 rank <= rest.parts[i].ranges[j].last && n < claim->left; rank++) {
                struct signature one = {.kind = COLL_CONSTRUCT};
                procset_add(&one.members, rest.parts[i].nspace, (uint32_t)rank, (uint32_t)rank);
                n += engine->env.local_status(engine->env.arg, &one) == 0;
                procset_free(&one.members);
            }
    procset_free(&rest);
    claim->left = n;
    if (n == 0)
        claim_free(engine, claim);
}

static bool all_here(const struct engine *engine, const struct procset *members)
{
    struct procset here = {0};
    bool all =
        parts_local(engine, members, engine->env.self, &here) == 0 && procset_equal(members, &here);
    procset_free(&here);
    return all;
}

void member_claim(struct engine *engine, uint32_t from, struct wire_in *in)
{
    struct procset members = {0};
    char id[PROCSET_NAME_MAX + 1];
    uint64_t op = wire_get_u64(in);
    wire_get_str(in, id, sizeof id);
    procset_read(&members, in);
    size_t siglen;
    const void *sig = wire_get_block(in, &siglen);
    bool good = wire_end(in) && members.nparts > 0 && all_here(engine, &members);
    if (wire_end(in) && members.nparts == 0)
        unclaim(engine, from, op);
    else if (!good)
        log_warning("a malformed claim of node %u was dropped", from);
    struct claim *claim = good ? claim_find(engine, from, op) : NULL;
    if (good && claim == NULL) {
        claim = claim_new(engine, from, op, id, &members);
        if (claim != NULL && siglen > 0 && (claim->sig = malloc(siglen)) != NULL)
            memcpy(claim->sig, sig, claim->siglen = siglen);
    }
    procset_free(&members);
    if (claim == NULL || claim->state == CLAIM_OWED)
        return;
    claim->at = engine->env.now(engine->env.arg);
    claim_try(engine, id);
}

/* Takes the calls that have ended. What failed is owed to those who have not called yet. */
static void take(struct engine *engine, struct claim *claim, const struct engine_result *result,
                 struct waiting_list *ended)
{
    int32_t status = result->status;
    struct waiting *w, *next;
    if (status != 0)
        fill(engine, claim);
    for (w = TAILQ_FIRST(&engine->joins); w != NULL; w = next) {
        next = TAILQ_NEXT(w, all);
        if (w->claim != claim)
            continue;
        TAILQ_REMOVE(&engine->joins, w, all);
        TAILQ_INSERT_TAIL(ended, w, all);
        w->claim = NULL;
        member_pay(engine, w, status == 0);
        procset_unite(&claim->answered, w->call->caller);
        claim->left--;
    }
    quit_settle(engine, claim);
    claim->state = CLAIM_OWED;
    claim->status = status;
    if (result->gone != NULL)
        procset_unite(&claim->gone, result->gone);
    claim->at = engine->env.now(engine->env.arg);
    if (status == 0)
        claim_free(engine, claim);
    else
        owe_the_living(engine, claim);
}

/* Ends an operation on this server. */
void claim_end(struct engine *engine, uint32_t decider, const char *id,
               const struct tracker_release *release, struct waiting_list *ended)
{
    struct claim *claim = claim_find(engine, decider, release->op);
    int32_t status = release->result.status;
    struct procset local = {0};
    /* A server that answers for one that is lost tells of that one's assembly, not of its own. */
    if (claim != NULL && strcmp(claim->id, id) != 0)
        return;
    if (claim == NULL && status != 0 && release->added != NULL) {
        parts_local(engine, release->added, engine->env.self, &local);
        if (local.nparts > 0)
            claim = claim_new(engine, decider, release->op, id, &local);
        procset_free(&local);
    }
    if (claim != NULL && claim->state != CLAIM_OWED)
        take(engine, claim, &release->result, ended);
}

/* One that was added and has called as a leader: it does not call as a member any more. */
void claim_forgive(struct engine *engine, uint32_t decider, struct engine_call *leader)
{
    struct waiting w = {.call = leader};
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim->state != CLAIM_OWED || claim->decider != decider || !claim_wants(claim, &w))
            continue;
        procset_unite(&claim->answered, leader->caller);
        if (--claim->left == 0)
            claim_free(engine, claim);
    }
}

/* An open claim of one that has ended; what is done to it may free any other. */
static struct claim *lost_claim(struct engine *engine)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->state == CLAIM_OPEN && local_status(engine, claim) != 0)
            return claim;
    return NULL;
}

void member_local_loss(struct engine *engine)
{
    struct claim *claim, *next;
    while ((claim = lost_claim(engine)) != NULL)
        try_one(engine, claim);
    for (claim = TAILQ_FIRST(&engine->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim->state == CLAIM_OWED)
            owe_the_living(engine, claim);
    }
}

uint32_t claim_decider(const struct engine *engine, uint32_t from, uint64_t op, const void *sig,
                       size_t siglen)
{
    const struct claim *claim;
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->state == CLAIM_DOUBT && claim->op == op && claim->siglen == siglen &&
            memcmp(claim->sig, sig, siglen) == 0)
            return claim->decider;
    return from;
}

/* Ends what nobody can tell of. May free any claim. */
static void end_lost(struct engine *engine, struct claim *claim)
{
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct engine_result result = {.status = engine->env.codes.lost};
    take(engine, claim, &result, &ended);
    member_done(&ended, &result);
}

void claim_ask(struct engine *engine, struct claim *claim)
{
    claim->state = CLAIM_DOUBT;
    claim->ask = engine->env.now(engine->env.arg) + ENGINE_FLUSH_MS;
    if (!doubt_claim(engine, claim))
        end_lost(engine, claim);
}

/* Calls that have joined may belong to a success that somebody else knows. */
void member_lost(struct engine *engine, uint32_t node)
{
    struct claim *claim = TAILQ_FIRST(&engine->claims);
    while (claim != NULL) {
        bool ours =
            claim->decider == node && (claim->state == CLAIM_OPEN || claim->state == CLAIM_TOLD);
        if (ours && claim->state == CLAIM_TOLD && claim->sig != NULL)
            claim_ask(engine, claim);
        else if (ours)
            end_lost(engine, claim);
        claim = ours ? TAILQ_FIRST(&engine->claims) : TAILQ_NEXT(claim, all);
    }
}
