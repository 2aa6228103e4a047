/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that a claim takes, and what the server that decides is told of them.
 *
 * A claim takes its calls all at once, when there are as many as it has members: first those that
 * are named in it, then nameless ones.
 */
#include "common/tracker/membership/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t joins_fill(struct engine *engine, struct claim *claim)
{
    struct procset taken = {0};
    struct waiting *w;
    uint64_t n = 0, most = procset_size(&claim->members);
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (w->claim == claim) {
            n++;
            if (waiting_is_named(w))
                procset_unite(&taken, w->call->caller);
        }
    for (int named = 1; named >= 0; named--)
        TAILQ_FOREACH (w, &engine->membership->joins, all) {
            if (w->claim != NULL || waiting_is_named(w) != named || n == most ||
                !claim_wants(claim, w->call->id, w->call->caller) ||
                procset_has_first(&taken, w->call->caller))
                continue;
            w->claim = claim;
            n++;
            if (named)
                procset_unite(&taken, w->call->caller);
        }
    procset_free(&taken);
    return n;
}

/* What the calls that a claim has bring, borrowed from them, by free(); NULL: out of memory. */
static struct engine_entry *brought(const struct engine *engine, const struct claim *claim,
                                    uint32_t *n)
{
    const struct waiting *w;
    uint32_t most = 0;
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        most += w->claim == claim && w->call->len > 0;
    struct engine_entry *entries = calloc(most + 1ul, sizeof *entries);
    *n = 0;
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (entries != NULL && w->claim == claim && w->call->len > 0) {
            entries[*n] =
                (struct engine_entry){.slot = *n, .data = w->call->data, .len = w->call->len};
            (*n)++;
        }
    return entries;
}

void joins_tell(struct engine *engine, struct claim *claim, int32_t status)
{
    uint64_t now = engine_now(engine), left = 0;
    const uint64_t clock = engine_clock(engine);
    uint32_t timeout = 0, n = 0, flags = 0;
    const struct waiting *w;
    struct wire_out out = {0};
    struct procset gone = {0};
    if (!claim_move(claim, CLAIM_TELL))
        return;
    claim->ask = now + ENGINE_ASK_MS;
    claim_due(engine, claim);
    TAILQ_FOREACH (w, &engine->membership->joins, all) {
        if (w->claim != claim)
            continue;
        if (status == 0)
            status = w->call->status;
        flags |= w->call->flags;
        uint64_t end = w->deadline - ENGINE_GRACE_MS;
        if (w->deadline != 0 && (timeout == 0 || end < clock + left)) {
            timeout = w->call->timeout;
            left = end > clock ? end - clock : 0;
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
    struct engine_entry *entries = brought(engine, claim, &n);
    out.failed |= entries == NULL;
    entries_put(&out, entries, n);
    free(entries);
    assembly_send(engine, claim->decider, &out); /* may end it all */
}

/* Why members of this server cannot join, or 0. */
int32_t joins_local_status(const struct engine *engine, const struct claim *claim)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = claim->members};
    snprintf(sig.id, sizeof sig.id, "%s", claim->id);
    return engine->env.local_status(engine->env.arg, &sig);
}

bool joins_try(struct engine *engine, struct claim *claim)
{
    struct waiting *w;
    if (joins_fill(engine, claim) < procset_size(&claim->members)) {
        claim_unfill(engine, claim);
        int32_t status = joins_local_status(engine, claim);
        if (status != 0)
            joins_tell(engine, claim, status);
        return status != 0;
    }
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (w->claim == claim && w->deadline != 0)
            w->deadline += ENGINE_GRACE_MS; /* the word of the server that decides comes first */
    joins_tell(engine, claim, 0);
    return true;
}

void joins_try_all(struct engine *engine, const char *borrowed)
{
    struct claim *claim = TAILQ_FIRST(&engine->membership->claims);
    char id[PROCSET_NAME_MAX + 1]; /* the call that owns it may be answered */
    snprintf(id, sizeof id, "%s", borrowed);
    while (claim != NULL) {
        bool told =
            claim->state == CLAIM_OPEN && strcmp(claim->id, id) == 0 && joins_try(engine, claim);
        claim = told ? TAILQ_FIRST(&engine->membership->claims) : TAILQ_NEXT(claim, all);
    }
}
