/* SPDX-License-Identifier: BSD-3-Clause */
/* How a claim begins and ends. It begins when a server that decides an operation claims members of
 * this server. It ends when the outcome is here, or when no server is left that can tell it.
 */
#include "common/tracker/membership/private.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static timer_fire tick;

/* Whether a bootstrap's home is lost, and the next one may claim members of @p claim again. */
static bool is_homeless(const struct claim *claim)
{
    return claim->state == CLAIM_DOUBT && claim->sig == NULL;
}

/* Whether one claim is of another home for members of the other one. */
static bool is_same(const struct claim *claim, const struct claim *other)
{
    struct procset rest = {0};
    bool same = claim != other && strcmp(claim->id, other->id) == 0 &&
                procset_except(&rest, &other->members, &claim->members) == 0 &&
                procset_size(&rest) < procset_size(&other->members);
    procset_free(&rest);
    return same;
}

static bool has_next_home(const struct engine *engine, const struct claim *claim)
{
    const struct claim *other;
    TAILQ_FOREACH (other, &engine->membership->claims, all)
        if ((other->state == CLAIM_OPEN || other->state == CLAIM_TOLD) && is_same(other, claim))
            return true;
    return false;
}

/* A home is lost, or the next home has claimed members: what a lost home had claimed, and the next
 * one claims, too, is over. */
static void forget_homeless(struct engine *engine)
{
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->membership->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (is_homeless(claim) && has_next_home(engine, claim))
            claim_free(engine, claim);
    }
}

/* Takes over the bytes of @p members. */
static struct claim *claim_new(struct engine *engine, uint32_t decider, uint64_t op, const char *id,
                               struct procset *members)
{
    struct claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    timer_init(&claim->due, engine->env.timers, tick, engine);
    claim->at = engine_now(engine);
    claim->decider = decider;
    claim->op = op;
    snprintf(claim->id, sizeof claim->id, "%s", id);
    claim->members = *members;
    *members = (struct procset){0};
    claim_due(engine, claim);
    TAILQ_INSERT_TAIL(&engine->membership->claims, claim, all);
    forget_homeless(engine);
    return claim;
}

static void keep_sig(struct claim *claim, const void *sig, size_t siglen)
{
    if (siglen > 0 && (claim->sig = malloc(siglen)) != NULL)
        memcpy(claim->sig, sig, claim->siglen = siglen);
}

/* The server that decides no longer knows the operation: the calls are free for other claims. */
static void unclaim(struct engine *engine, uint32_t from, uint64_t op)
{
    struct claim *claim = claim_find(engine, from, op);
    char id[PROCSET_NAME_MAX + 1];
    if (claim == NULL || claim->state == CLAIM_OVER)
        return;
    memcpy(id, claim->id, sizeof id);
    claim_free(engine, claim);
    joins_try_all(engine, id);
}

static bool all_here(const struct engine *engine, const struct procset *members)
{
    struct procset here = {0};
    bool all =
        members_on(engine, members, engine->env.self, &here) == 0 && procset_equal(members, &here);
    procset_free(&here);
    return all;
}

void claim_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct wire_in *in = &frame->in;
    uint32_t from = frame->from;
    (void)t;
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
        if (claim != NULL)
            keep_sig(claim, sig, siglen);
    }
    procset_free(&members);
    if (claim == NULL || claim->state == CLAIM_OVER)
        return;
    claim->at = engine_now(engine);
    joins_try_all(engine, id);
}

/* Whether the leaders of @p success are those of @p failed that are not lost. */
static bool has_leaders_left(const struct claim *success, const struct claim *failed)
{
    struct signature left = {0}, all = {0};
    struct procset both = {0};
    bool has = signature_read(&left, success->sig, success->siglen) == 0 &&
               signature_read(&all, failed->sig, failed->siglen) == 0 &&
               procset_unite(&both, &left.members) == 0 &&
               procset_unite(&both, &success->gone) == 0 &&
               procset_within(&left.members, &all.members) && procset_within(&all.members, &both);
    procset_free(&both);
    signature_free(&left);
    signature_free(&all);
    return has;
}

/* Whether a failure is of an earlier try of what has succeeded here: each try may have another
 * decider, so its word may come behind that of the later one. The success has gone on without all
 * processes that the failure names. */
static bool tried_since(const struct engine *engine, const struct claim *failed)
{
    const struct claim *success;
    TAILQ_FOREACH (success, &engine->membership->claims, all)
        if (success->state == CLAIM_OVER && strcmp(failed->id, success->id) == 0 &&
            failed->generation < success->generation && failed->gone.nparts > 0 &&
            procset_within(&failed->gone, &success->gone) && failed->sig != NULL &&
            success->sig != NULL && has_leaders_left(success, failed))
            return true;
    return false;
}

/* A later try has succeeded: what is kept of those before, for the same members, is of no use. */
static void forget_tries(struct engine *engine, const struct claim *success)
{
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->membership->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim->state == CLAIM_OVER && strcmp(claim->id, success->id) == 0 &&
            procset_within(&claim->members, &success->members))
            claim_free(engine, claim);
    }
}

/* Takes the calls that have ended. Of a failure those that wait, too; members that call later call
 * for the next construct. */
static void take(struct engine *engine, struct claim *claim, const struct tracker_release *release,
                 struct engine_call **ended)
{
    int32_t status = release->result.status;
    const struct procset *gone = release->result.gone;
    struct waiting *w, *next;
    claim->generation = release->generation;
    if (gone != NULL)
        procset_unite(&claim->gone, gone);
    if (status != 0 && tried_since(engine, claim))
        claim_unfill(engine, claim);
    else if (status != 0 && (claim->state == CLAIM_OPEN || is_homeless(claim)))
        joins_fill(engine, claim);
    for (w = TAILQ_FIRST(&engine->membership->joins); w != NULL; w = next) {
        next = TAILQ_NEXT(w, all);
        if (w->claim == claim)
            claim_release(engine, w, ended);
    }
    if (status != 0 || gone == NULL) {
        claim_free(engine, claim);
        return;
    }
    forget_tries(engine, claim);
    claim_move(claim, CLAIM_DONE);
    claim->at = engine_now(engine);
    claim_due(engine, claim);
}

void claim_end(struct engine *engine, struct claim *claim, uint32_t decider, const char *id,
               const struct release_frame *frame, struct engine_call **ended)
{
    const struct tracker_release *release = &frame->release;
    int32_t status = release->result.status;
    struct procset local = {0};
    if (claim == NULL && status != 0 && release->added != NULL) {
        members_on(engine, release->added, engine->env.self, &local);
        if (local.nparts > 0)
            claim = claim_new(engine, decider, release->op, id, &local);
        if (claim != NULL)
            keep_sig(claim, frame->sig, frame->siglen);
        procset_free(&local);
    }
    if (claim != NULL && claim->state != CLAIM_OVER)
        take(engine, claim, release, ended);
}

void member_take(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 struct engine_call **ended)
{
    struct release_frame others = {.release = *release, .sig = t->sig, .siglen = t->siglen};
    struct procset rest = {0};
    if (release->op == 0)
        return;
    procset_except(&rest, release->added, &t->parts.members); /* leaders do not call as members */
    others.release.added = &rest;
    uint32_t decider = tracker_node(t, t->tree.root);
    claim_end(engine, claim_find(engine, decider, release->op), decider, t->parts.id, &others,
              ended);
    procset_free(&rest);
}

/* An open claim of one that has ended; what is done to it may free any other. */
static struct claim *lost_claim(struct engine *engine)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->membership->claims, all)
        if (claim->state == CLAIM_OPEN && joins_local_status(engine, claim) != 0)
            return claim;
    return NULL;
}

void claim_local_loss(struct engine *engine)
{
    struct claim *claim;
    while ((claim = lost_claim(engine)) != NULL)
        joins_try(engine, claim);
}

static bool is_of(const struct claim *claim, const void *sig, size_t siglen)
{
    return claim->siglen == siglen && memcmp(claim->sig, sig, siglen) == 0;
}

struct claim *claim_told(struct engine *engine, uint32_t from, const char *id, uint64_t op,
                         const void *sig, size_t siglen)
{
    struct claim *claim;
    TAILQ_FOREACH (claim, &engine->membership->claims, all)
        if (claim->state == CLAIM_DOUBT && claim->op == op && is_of(claim, sig, siglen))
            return claim;
    /* A late answer for a lost server has the number of that server's operation. */
    claim = claim_find(engine, from, op);
    bool other = claim != NULL &&
                 (claim->sig != NULL ? !is_of(claim, sig, siglen) : strcmp(claim->id, id) != 0);
    return other ? NULL : claim;
}

/* Ends a claim whose outcome no server can tell. May free any claim. */
static void end_lost(struct engine *engine, struct claim *claim)
{
    struct engine_call *ended = NULL;
    struct tracker_release release = {.result.status = engine->env.codes.lost};
    take(engine, claim, &release, &ended);
    calls_done(&ended, &release.result);
}

static void ask(struct engine *engine, struct claim *claim)
{
    if (!claim_move(claim, CLAIM_LOSS))
        return;
    claim->ask = engine_now(engine) + ENGINE_FLUSH_MS;
    claim_due(engine, claim);
    if (!engine->up->ask(engine, claim->op, claim->sig, claim->siglen))
        end_lost(engine, claim);
}

/* Leaders of a bootstrap go to the next home, which claims their members anew: frees the calls for
 * that claim. */
static void await_home(struct engine *engine, struct claim *claim)
{
    char id[PROCSET_NAME_MAX + 1];
    if (!claim_move(claim, CLAIM_LOSS))
        return;
    memcpy(id, claim->id, sizeof id);
    claim_unfill(engine, claim);
    claim->ask = engine_now(engine) + ENGINE_HOME_MS;
    claim_due(engine, claim);
    forget_homeless(engine);
    joins_try_all(engine, id);
}

/* Calls that have joined may belong to a success that another server knows. */
void claim_lost(struct engine *engine, uint32_t node)
{
    struct claim *claim = TAILQ_FIRST(&engine->membership->claims);
    while (claim != NULL) {
        bool ours =
            claim->decider == node && (claim->state == CLAIM_OPEN || claim->state == CLAIM_TOLD);
        if (ours && claim->state == CLAIM_TOLD && claim->sig != NULL)
            ask(engine, claim);
        else if (ours && claim->sig == NULL && engine->env.home != NULL)
            await_home(engine, claim);
        else if (ours)
            end_lost(engine, claim);
        claim = ours ? TAILQ_FIRST(&engine->membership->claims) : TAILQ_NEXT(claim, all);
    }
}

/* What else stands here is told its outcome by the server that decides, or loses that one. */
void claim_forget(struct engine *engine, const char *nspace)
{
    struct claim *claim, *next;
    for (claim = TAILQ_FIRST(&engine->membership->claims); claim != NULL; claim = next) {
        next = TAILQ_NEXT(claim, all);
        if (claim->state == CLAIM_OVER && (procset_has_of(&claim->gone, nspace) ||
                                           signature_names(claim->sig, claim->siglen, nspace)))
            claim_free(engine, claim);
    }
}

/* Forgets a claim, unless calls wait for its outcome. An open one is repeated as long as it
 * stands. */
static void old_enough(struct engine *engine, struct claim *claim, uint64_t now)
{
    const struct waiting *w;
    TAILQ_FOREACH (w, &engine->membership->joins, all)
        if (w->claim == claim) {
            claim->at = now;
            return;
        }
    claim_free(engine, claim);
}

static void tick(void *arg, struct timer *due)
{
    struct engine *engine = arg;
    struct claim *claim = TIMER_OF(due, struct claim, due);
    uint64_t now = engine_now(engine);
    if (!engine_is_due(engine, due, claim_due_at(engine, claim)))
        return;
    if (claim->at + ENGINE_REMEMBER_MS <= now || claim->state == CLAIM_OVER) {
        old_enough(engine, claim, now);
    } else if (is_homeless(claim)) {
        end_lost(engine, claim);
    } else if (claim->state == CLAIM_DOUBT) {
        ask(engine, claim);
    } else {
        claim->ask = now + ENGINE_ASK_MS;
        assembly_ping(engine, claim->decider); /* may tell us that it is lost */
    }
}
