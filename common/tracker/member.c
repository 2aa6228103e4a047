/* SPDX-License-Identifier: BSD-3-Clause */
/* Added members: calls that wait on their own server until who decides claims them. */
#include "common/tracker/assembly.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct engine_call *call, int32_t status)
{
    struct engine_result result = {.status = status};
    call->done(call, &result);
}

/* Whether leaders of this server have called for the same group: the call's fate is theirs, since
 * PMIx's library answers all calls of one id on a server at once. */
static bool is_busy(const struct engine *engine, const char *id)
{
    const struct tracker *t;
    const struct waiting *w;
    bool busy = false;
    TAILQ_FOREACH (w, &engine->leads, all)
        busy = busy || strcmp(w->call->id, id) == 0;
    TAILQ_FOREACH (t, &engine->all, all)
        busy = busy ||
               (t->call != NULL && t->parts.kind == COLL_CONSTRUCT && strcmp(t->parts.id, id) == 0);
    return busy;
}

static struct claim *debt_of(const struct engine *engine, struct engine_call *call)
{
    const struct waiting w = {.call = call};
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->state == CLAIM_OWED && claim_wants(claim, &w))
            return claim;
    return NULL;
}

/* Whether a call is of an operation that has failed; then it is answered as the others were. */
static bool is_owed(struct engine *engine, struct engine_call *call, struct tracker_debt *debt)
{
    struct claim *claim = debt_of(engine, call);
    if (claim == NULL)
        return false;
    *debt = (struct tracker_debt){.status = claim->status};
    procset_unite(&debt->gone, &claim->gone);
    procset_unite(&claim->answered, call->caller);
    if (--claim->left == 0)
        claim_free(engine, claim);
    return true;
}

void member_pay(struct engine *engine, const struct waiting *w, bool all)
{
    struct tracker_debt debt = {0};
    bool more = w->indebted;
    while (more) {
        more = is_owed(engine, w->call, &debt) && all && waiting_is_named(w);
        procset_free(&debt.gone);
        debt = (struct tracker_debt){0};
    }
}

/* Takes a call out of those that wait; nothing is owed for it any more. */
static struct engine_call *leave(struct engine *engine, struct waiting *w)
{
    struct engine_call *call = w->call;
    TAILQ_REMOVE(&engine->joins, w, all);
    member_pay(engine, w, false);
    free(w);
    return call;
}

void engine_join(struct engine *engine, struct engine_call *call)
{
    struct tracker_debt debt = {.status = engine->env.codes.closing};
    struct waiting *w = engine->closing ? NULL : calloc(1, sizeof *w);
    bool busy = w != NULL && is_busy(engine, call->id);
    quit_returns(engine, call);
    if (w == NULL || (!busy && is_owed(engine, call, &debt))) {
        free(w);
        tracker_pay(call, &debt);
        return;
    }
    w->call = call;
    w->indebted = debt_of(engine, call) != NULL;
    w->opened = engine->env.now(engine->env.arg);
    w->deadline = call->timeout > 0 ? w->opened + call->timeout * 1000ull : 0;
    w->report = engine->env.stall > 0 ? w->opened + engine->env.stall * 1000ull : 0;
    TAILQ_INSERT_TAIL(&engine->joins, w, all);
    claim_try(engine, call->id);
}

bool member_withdraw(struct engine *engine, struct engine_call *call)
{
    struct waiting *w;
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->call == call)
            break;
    if (w == NULL || w->claim != NULL)
        return false;
    if (!w->indebted)
        quit_note(engine, call);
    leave(engine, w);
    return true;
}

void engine_forget(struct engine *engine, struct engine_call *call)
{
    struct tracker_debt debt = {0};
    struct tracker *t = call->sig != NULL ? tracker_find(engine, call->sig, call->siglen) : NULL;
    if (t != NULL && tracker_owed(t, &debt))
        tracker_tidy(engine, t);
    else if (call->sig == NULL)
        is_owed(engine, call, &debt);
    procset_free(&debt.gone);
}

bool engine_withdraw(struct engine *engine, struct engine_call *call)
{
    return member_withdraw(engine, call) || leader_withdraw(engine, call);
}

void member_take(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 struct waiting_list *ended)
{
    struct tracker_release others = *release;
    struct procset rest = {0};
    if (release->op == 0)
        return;
    procset_except(&rest, release->added, &t->parts.members); /* leaders do not call as members */
    others.added = &rest;
    claim_end(engine, tracker_node(t, t->tree.root), t->parts.id, &others, ended);
    procset_free(&rest);
}

void member_done(struct waiting_list *ended, const struct engine_result *result)
{
    struct waiting *w;
    while ((w = TAILQ_FIRST(ended)) != NULL) {
        struct engine_call *call = w->call;
        TAILQ_REMOVE(ended, w, all);
        free(w);
        call->done(call, result);
    }
}

/* Whether a failure that is owed can be given now, as no leader here shares the answer. */
static bool is_payable(const struct engine *engine, const struct waiting *w)
{
    return w->indebted && w->claim == NULL && !is_busy(engine, w->call->id);
}

static void pay(struct engine *engine, struct waiting *w)
{
    struct tracker_debt debt;
    if (is_owed(engine, w->call, &debt)) {
        w->indebted = false;
        tracker_pay(leave(engine, w), &debt);
    } else {
        w->indebted = false; /* forgotten */
    }
}

/* ---- time ---- */

/* Whether who decides is asked whether it is still there, or others what became of it. */
static bool asks(const struct engine *engine, const struct claim *claim)
{
    return claim->state == CLAIM_DOUBT ||
           (claim->state == CLAIM_TOLD && claim->decider != engine->env.self);
}

static uint64_t due_at(const struct waiting *w)
{
    uint64_t report = w->claim == NULL && w->report != 0 ? w->report : UINT64_MAX;
    return w->deadline != 0 && w->deadline < report ? w->deadline : report;
}

uint64_t member_next(const struct engine *engine)
{
    uint64_t at = UINT64_MAX;
    const struct waiting *w;
    const struct claim *claim;
    TAILQ_FOREACH (w, &engine->joins, all) {
        if (is_payable(engine, w))
            return 0;
        if (due_at(w) < at)
            at = due_at(w);
    }
    TAILQ_FOREACH (claim, &engine->claims, all) {
        if (claim->at + ENGINE_REMEMBER_MS < at)
            at = claim->at + ENGINE_REMEMBER_MS;
        if (asks(engine, claim) && claim->ask < at)
            at = claim->ask;
    }
    return at;
}

/* Forgets a claim, unless calls wait for its outcome. An open one is repeated as long as it
 * stands. */
static void forget(struct engine *engine, struct claim *claim, uint64_t now)
{
    const struct waiting *w;
    TAILQ_FOREACH (w, &engine->joins, all)
        if (w->claim == claim) {
            claim->at = now;
            return;
        }
    claim_free(engine, claim);
}

void member_describe(struct engine *engine, const struct waiting *w, char *buf, size_t cap)
{
    struct signature sig = {.kind = COLL_CONSTRUCT, .members = *w->call->caller};
    char what[256] = "";
    if (waiting_is_named(w))
        engine->env.missing(engine->env.arg, &sig, &engine->env.self, 1, what, sizeof what);
    else
        snprintf(what, sizeof what, "a process on %s",
                 engine->env.name(engine->env.arg, engine->env.self));
    snprintf(buf, cap,
             "group \"%s\" construct: called as an added member, and added by no leader: %s",
             w->call->id, what);
}

static void expire(struct engine *engine, struct waiting *w)
{
    struct engine_call *call = w->call;
    struct claim *claim = w->claim;
    char text[512];
    if (claim == NULL)
        TAILQ_FOREACH (claim, &engine->claims, all)
            if (claim->state == CLAIM_OPEN && claim_wants(claim, w))
                break;
    if (claim != NULL && claim->state == CLAIM_OPEN) { /* others of this server are missing */
        w->deadline += ENGINE_GRACE_MS;
        claim_tell(engine, claim, engine->env.codes.timeout);
        return;
    }
    if (claim == NULL && is_busy(engine, call->id)) {
        w->deadline += ENGINE_GRACE_MS;
        return;
    }
    member_describe(engine, w, text, sizeof text);
    if (claim != NULL) {
        log_error("timed out after %u s: group \"%s\" construct: no word of node %s, which decides",
                  call->timeout, call->id, engine->env.name(engine->env.arg, claim->decider));
        procset_unite(&claim->answered, call->caller); /* nothing is owed for this one */
        claim->left--;
    } else {
        log_error("timed out after %u s: %s", call->timeout, text);
        if (!w->indebted)
            quit_note(engine, call);
    }
    refuse(leave(engine, w), engine->env.codes.timeout);
}

bool member_tick(struct engine *engine, uint64_t now)
{
    struct waiting *w;
    struct claim *claim;
    char text[512];
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->at + ENGINE_REMEMBER_MS <= now) {
            forget(engine, claim, now);
            return true;
        } else if (asks(engine, claim) && claim->ask <= now && claim->state == CLAIM_DOUBT) {
            claim_ask(engine, claim);
            return true;
        } else if (asks(engine, claim) && claim->ask <= now) {
            claim->ask = now + ENGINE_ASK_MS;
            assembly_ping(engine, claim->decider); /* may tell us that it is lost */
            return true;
        }
    TAILQ_FOREACH (w, &engine->joins, all)
        if (is_payable(engine, w)) {
            pay(engine, w);
            return true;
        }
    TAILQ_FOREACH (w, &engine->joins, all) {
        if (due_at(w) > now)
            continue;
        if (w->deadline != 0 && w->deadline <= now) {
            expire(engine, w);
        } else {
            w->report += engine->env.stall * 1000ull;
            member_describe(engine, w, text, sizeof text);
            engine_stalled(engine, w->opened, now, text);
        }
        return true;
    }
    return false;
}

void member_close(struct engine *engine)
{
    struct waiting_list ended = TAILQ_HEAD_INITIALIZER(ended);
    struct engine_result result = {.status = engine->env.codes.closing};
    struct claim *claim;
    struct waiting *w;
    TAILQ_FOREACH (claim, &engine->claims, all)
        if (claim->state == CLAIM_OPEN && claim->decider != engine->env.self)
            claim_tell(engine, claim, result.status);
    while ((claim = TAILQ_FIRST(&engine->claims)) != NULL)
        claim_free(engine, claim);
    while ((w = TAILQ_FIRST(&engine->joins)) != NULL) {
        TAILQ_REMOVE(&engine->joins, w, all);
        TAILQ_INSERT_TAIL(&ended, w, all);
    }
    member_done(&ended, &result);
}
