/* SPDX-License-Identifier: BSD-3-Clause */
/* Doubt: an operation may have succeeded without this server's knowing, since a server that would
 * have brought the result is lost.
 *
 * As long as the root is there, it alone is asked, and its word is final: an operation that it has
 * not decided yet, it fails. When the root is lost, a server is in doubt if it has contributed its
 * whole subtree, because the root may have decided then. It asks all other servers. A server that
 * has the result (decided.c), or knows of a failure, answers with that. Each other server answers
 * that it has none, and from then on takes no result from a server that any server has named as
 * lost. Once all servers that are left have answered so, and have named the same servers as lost,
 * no server can have a success or get one. Then the operation fails, everywhere with the same list
 * of lost servers.
 *
 * A server of added members asks in the same way, once it has joined.
 *
 * A success does not say of which calls it was made. But its generation is higher than every one
 * that a participant had heard of when it called, and a server calls again only when it has heard
 * what became of its call before. So a success is of a server's current call when its generation is
 * higher than what that server had heard of when it made the call: the floor of that call.
 */
#include "common/tracker/recovery/recovery.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>

enum doubt_kind { DOUBT_ASKS = 1, DOUBT_SAYS, DOUBT_MEMBERS };

/* What a DOUBT says. */
struct doubt {
    uint32_t from, slot; /* the sender; TREE_NONE: of added members */
    enum doubt_kind kind;
    uint64_t known, number, floor, op, success;
    struct ranges lost;
};

static uint32_t count_lost(const struct engine *engine, const struct tracker *t)
{
    struct ranges lost = {0};
    tracker_lost_slots(engine, t, &lost);
    uint32_t n = (uint32_t)ranges_count(&lost);
    ranges_free(&lost);
    return n;
}

static void put_doubt(struct wire_out *out, const void *sig, size_t siglen,
                      const struct doubt *doubt)
{
    wire_put_u8(out, FRAME_DOUBT);
    wire_put_block(out, sig, siglen);
    wire_put_u8(out, (uint8_t)doubt->kind);
    wire_put_u64(out, doubt->known);
    wire_put_u64(out, doubt->number);
    wire_put_u64(out, doubt->floor);
    wire_put_u64(out, doubt->op);
    wire_put_u64(out, doubt->success);
    ranges_write(&doubt->lost, UINT32_MAX, out);
}

/* @param answered NULL: nothing is */
static void say(struct engine *engine, const struct tracker *t, uint32_t slot, enum doubt_kind kind,
                const struct doubt *answered)
{
    const struct decided *d = decided_find(engine, t->sig, t->siglen);
    struct wire_out out = {0};
    struct doubt doubt = {.kind = kind,
                          .known = t->failure.generation,
                          .number = t->call != NULL ? t->number : 0,
                          .floor = t->failure.given_up ? UINT64_MAX : t->floor,
                          .success = d != NULL ? d->generation : 0};
    if (answered != NULL)
        ranges_unite(&doubt.lost, &answered->lost);
    tracker_lost_slots(engine, t, &doubt.lost);
    put_doubt(&out, t->sig, t->siglen, &doubt);
    ranges_free(&doubt.lost);
    rollup_send(engine, t, slot, &out, NULL);
}

void doubt_ask(struct engine *engine, struct tracker *t)
{
    if (!tracker_slot_lost(engine, t, t->tree.root)) {
        say(engine, t, t->tree.root, DOUBT_ASKS, NULL);
        return;
    }
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (i != t->self && !tracker_slot_lost(engine, t, i))
            say(engine, t, i, DOUBT_ASKS, NULL);
}

/* Whether a server's answer is awaited. */
static bool is_silent(const struct tracker *t, uint32_t slot)
{
    bool said = t->doubts != NULL && t->doubts[slot] == t->asked;
    return slot != t->self && !said && !ranges_have(&t->lost, slot);
}

/* Whether all that are left do not know the result either, and never will. */
static bool is_unknown(const struct engine *engine, const struct tracker *t)
{
    if (!tracker_slot_lost(engine, t, t->tree.root))
        return false;
    for (uint32_t i = 0; i < t->tree.n; i++)
        if (is_silent(t, i))
            return false;
    return true;
}

void doubt_progress(struct engine *engine, struct tracker *t)
{
    bool root = tracker_slot_lost(engine, t, t->tree.root);
    bool parent = tracker_slot_lost(engine, t, t->parent);
    bool sent = t->state == TRACKER_SENT || t->state == TRACKER_DOUBT;
    if (!parent && !(root && sent))
        return;
    if (root && !sent) { /* it has not got all, so it has not decided */
        tracker_give_up(engine, t, tracker_slot_loss(engine, t, t->tree.root));
        return;
    }
    uint32_t lost = count_lost(engine, t);
    if (t->asked != lost && tracker_move(engine, t, TRACKER_LOSS)) {
        t->asked = lost;
        t->flush = engine_now(engine) + ENGINE_ASK_MS;
        tracker_due(t);
        if (t->call == NULL) /* no call here has a deadline */
            tracker_arm(engine, t, ENGINE_STRAGGLER_MS / 1000, ENGINE_STRAGGLER_MS);
        doubt_ask(engine, t);
    }
    if (is_unknown(engine, t))
        tracker_give_up(engine, t, tracker_slot_loss(engine, t, t->tree.root));
}

void doubt_missing(struct engine *engine, const struct tracker *t, char *buf, size_t cap)
{
    const struct engine_env *env = &engine->env;
    bool root = !tracker_slot_lost(engine, t, t->tree.root);
    char what[320];
    signature_describe(t->sig, t->siglen, what, sizeof what);
    int len =
        snprintf(buf, cap,
                 "%s: the server that would bring the result is lost; no word yet of what the "
                 "others know:",
                 what);
    for (uint32_t i = 0; i < t->tree.n && len > 0 && (size_t)len < cap; i++)
        if (root ? i == t->tree.root : is_silent(t, i))
            len += snprintf(buf + len, cap - (size_t)len, " %s",
                            env->name(env->arg, tracker_node(t, i)));
}

/* ---- which servers are asked ---- */

/* Takes over which servers the sender knows to be lost. */
static void learn(struct engine *engine, struct tracker *t, const struct doubt *doubt)
{
    for (struct ranges_at at = {0}; ranges_next(&doubt->lost, &at);)
        if (!ranges_have(&t->lost, at.number))
            tracker_lose(engine, t, at.number);
}

/* Whether the sender asks about an operation that has failed, as far as we know. */
static bool is_over(const struct tracker *t, const struct doubt *doubt)
{
    return tracker_past_after(t, doubt->known) != NULL;
}

/* Answers by the first failure that the sender has not heard of, or says that we know nothing. */
static void refuse(struct engine *engine, const struct tracker *t, const struct doubt *doubt)
{
    const struct tracker_past *past = tracker_past_after(t, doubt->known);
    if (past == NULL)
        say(engine, t, doubt->slot, DOUBT_SAYS, doubt);
    else
        rollup_tell(engine, t, doubt->slot, past, doubt->number);
}

/* Answers a server of added members that it has failed. */
static void refuse_members(struct engine *engine, const struct tracker *t,
                           const struct doubt *doubt)
{
    struct tracker_release release = {.op = doubt->op, .result.status = engine->env.codes.lost};
    outcome_send(engine, doubt->from, NULL, 0, release_bytes(&release, t->sig, t->siglen));
    release_end(&release);
}

/* Answers with the result, if it is here. @return whether it is */
static bool answer(struct engine *engine, const struct tracker *t, const struct doubt *doubt)
{
    const struct decided *d = decided_find(engine, t->sig, t->siglen);
    if (d == NULL || doubt->kind == DOUBT_SAYS)
        return false;
    if (doubt->kind == DOUBT_MEMBERS) {
        if (d->op != doubt->op)
            return false;
        outcome_send(engine, doubt->from, NULL, 0, d->bytes);
        return true;
    }
    if (doubt->number == 0 || d->generation <= doubt->floor)
        return false;
    rollup_kept(engine, t, doubt->slot, d, doubt->number);
    return true;
}

/* The root has not decided, so it fails the operation; a server that has not contributed either has
 * no success to come. */
static void fail(struct engine *engine, struct tracker *t, const struct doubt *doubt)
{
    bool root = t->self == t->tree.root;
    if (t->state == TRACKER_IDLE && root) {
        tracker_open(engine, t);
        if (!tracker_move(engine, t, TRACKER_CHILD))
            return;
    }
    if (t->state == TRACKER_IDLE)
        return;
    learn(engine, t, doubt);
    if (root)
        rollup_decide(engine, t, tracker_slot_loss(engine, t, doubt->lost.v[0].first));
    else
        rollup_progress(engine, t);
}

static bool is_pending(const struct tracker *t)
{
    return t->state == TRACKER_SENT || t->state == TRACKER_DOUBT;
}

static void note(struct tracker *t, const struct doubt *doubt)
{
    if (t->doubts == NULL)
        t->doubts = calloc(t->tree.n, sizeof *t->doubts);
    if (t->doubts != NULL)
        t->doubts[doubt->slot] = (uint32_t)ranges_count(&doubt->lost);
}

/* The sender knows of no success that we do not know. @p t may be gone afterwards */
static void take(struct engine *engine, struct tracker *t, const struct doubt *doubt)
{
    if (is_pending(t)) {
        learn(engine, t, doubt);
        /* When it has our result, or has heard of a failure that we have not, it means a later
         * operation, and will tell us. */
        if (doubt->kind != DOUBT_MEMBERS && !tracker_succeeds(t, doubt->success) &&
            doubt->known <= t->failure.generation)
            note(t, doubt);
        doubt_progress(engine, t);
    } else if (doubt->kind != DOUBT_SAYS && (doubt->kind == DOUBT_MEMBERS || !is_over(t, doubt))) {
        fail(engine, t, doubt);
    }
}

/* A server that is still in the operation lets a server of added members ask again (claims.c). */
static void reply(struct engine *engine, struct tracker *t, const struct doubt *doubt)
{
    if (doubt->kind == DOUBT_MEMBERS && !is_pending(t))
        refuse_members(engine, t, doubt);
    else if (doubt->kind == DOUBT_ASKS && (is_over(t, doubt) || !is_pending(t)))
        refuse(engine, t, doubt);
}

/* @return whether it makes sense here */
static bool read_doubt(const struct tracker *t, struct doubt *doubt, struct wire_in *in)
{
    doubt->slot = tracker_slot_of(t, doubt->from);
    doubt->kind = (enum doubt_kind)wire_get_u8(in);
    doubt->known = wire_get_u64(in);
    doubt->number = wire_get_u64(in);
    doubt->floor = wire_get_u64(in);
    doubt->op = wire_get_u64(in);
    doubt->success = wire_get_u64(in);
    ranges_read(&doubt->lost, t->tree.n - 1, in);
    bool good = wire_end(in) && doubt->lost.n > 0 && !ranges_have(&doubt->lost, t->self) &&
                coll_traits(t->parts.kind)->is_recoverable;
    if (doubt->kind == DOUBT_MEMBERS)
        return good && doubt->op != 0;
    return good && (doubt->kind == DOUBT_ASKS || doubt->kind == DOUBT_SAYS) &&
           doubt->slot != TREE_NONE && doubt->slot != t->self;
}

void doubt_take(struct engine *engine, struct tracker *t, struct frame_in *frame)
{
    struct doubt doubt = {.from = frame->from};
    if (!read_doubt(t, &doubt, &frame->in)) {
        log_warning("a malformed question of node %u was dropped", frame->from);
    } else if (!answer(engine, t, &doubt)) {
        take(engine, t, &doubt);
        t = tracker_get(engine, frame->sig, frame->siglen);
        if (t != NULL)
            reply(engine, t, &doubt);
    }
    ranges_free(&doubt.lost);
    if (t != NULL)
        tracker_tidy(engine, t);
}

/* ---- added members ---- */

bool doubt_members(struct engine *engine, uint64_t op, const void *sig, size_t siglen)
{
    struct signature parts;
    struct places places = {0};
    struct doubt doubt = {.kind = DOUBT_MEMBERS, .op = op};
    uint32_t asked = 0;
    if (signature_read(&parts, sig, siglen) != 0 ||
        engine->env.servers(engine->env.arg, &parts, &places) != 0)
        places.n = 0;
    signature_free(&parts);
    uint32_t own = places.n > 0 ? places_slot(&places, engine->env.self) : PLACES_NONE;
    for (uint32_t i = 0; i < places.n; i++)
        if (engine_is_lost(engine, places_node(&places, i)))
            ranges_add(&doubt.lost, i, i);
    for (uint32_t i = 0; i <= places.n; i++) { /* ourselves last: it may end the claim */
        struct wire_out out = {0};
        uint32_t slot = i < places.n ? i : own;
        if (slot == PLACES_NONE || (i == own && i < places.n) || ranges_have(&doubt.lost, slot))
            continue;
        put_doubt(&out, sig, siglen, &doubt);
        assembly_send(engine, places_node(&places, slot), &out);
        asked++;
    }
    ranges_free(&doubt.lost);
    places_free(&places);
    return asked > 0;
}
