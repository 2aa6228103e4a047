/* SPDX-License-Identifier: BSD-3-Clause */
/* How a view changes: propose and commit down the tree of the servers that stay, states up it.
 * docs/view.md, "The view". */
#include "common/view/private.h"

#include <stdlib.h>

static const struct view_name no_view;

static bool is_none(struct view_name name)
{
    return view_name_is(name, no_view);
}

/* ---- what is known: states and unions ---- */

static void known_free(struct known *known)
{
    ranges_free(&known->out);
    ranges_free(&known->left);
    view_words_free(&known->words);
    known->view = no_view;
}

/* Appends name, ranges of those who are out, ranges of those of them who left, words. */
static void known_write(const struct known *known, struct wire_out *out)
{
    view_put_name(out, known->view);
    ranges_write(&known->out, UINT32_MAX, out);
    ranges_write(&known->left, UINT32_MAX, out);
    view_words_write(&known->words, out);
}

static void known_read(const struct view *v, struct known *known, struct wire_in *in)
{
    known->view = view_get_name(in);
    ranges_read(&known->out, v->env.nnodes - 1, in);
    ranges_read(&known->left, v->env.nnodes - 1, in);
    view_words_read(&known->words, v->env.nnodes, in);
    if (!wire_end(in))
        in->bad = true;
}

/* Adds what another server knows. Only what those of the newest view know counts: what others know,
 * that view's commit has carried. @param more empty afterwards */
static void known_unite(struct view *v, struct known *known, struct known *more)
{
    if (view_name_above(more->view, known->view)) {
        known_free(known);
        known->view = more->view;
    }
    if (view_name_is(more->view, known->view)) {
        view_unite(v, &known->out, &more->out);
        view_unite(v, &known->left, &more->left);
        view_words_unite(&known->words, &more->words);
    }
    known_free(more);
}

/* Adds what this server knows itself. */
static void unite_own(struct view *v, struct known *known)
{
    struct wire_out out = {0};
    struct wire_in in;
    struct known own = {.words = TAILQ_HEAD_INITIALIZER(own.words)};
    struct known mine = {.view = v->name, .out = v->out, .left = v->left};
    TAILQ_INIT(&mine.words);
    TAILQ_CONCAT(&mine.words, &v->words, entry);
    known_write(&mine, &out);
    TAILQ_CONCAT(&v->words, &mine.words, entry);
    wire_in_init(&in, out.data, out.len);
    if (!out.failed)
        known_read(v, &own, &in);
    if (out.failed || in.bad)
        view_broken(v);
    wire_out_free(&out);
    known_unite(v, known, &own);
}

/* ---- proposing ---- */

static void put_ballot(struct wire_out *body, enum view_kind kind, struct view_name ballot)
{
    wire_put_u8(body, kind);
    view_put_name(body, ballot);
}

static void drop_mine(struct view *v)
{
    v->mine = no_view;
    ranges_free(&v->mine_lost);
    ranges_free(&v->mine_left);
}

void change_propose(struct view *v, const struct ranges *lost, const struct ranges *ended)
{
    struct ranges without = {0};
    struct wire_out body = {0};
    const struct view_name *top =
        view_name_above(v->promised, v->highest) ? &v->promised : &v->highest;
    timer_stop(&v->retry);
    drop_mine(v);
    v->highest = (struct view_name){top->number + 1, v->env.self};
    v->mine = v->highest;
    view_unite(v, &v->mine_lost, lost);
    view_unite(v, &v->mine_left, &v->leavers); /* also who has gone before it was let go */
    view_unite(v, &v->mine_left, ended);
    view_unite(v, &without, &v->out);
    view_unite(v, &without, lost);
    put_ballot(&body, VIEW_PROPOSE, v->mine);
    ranges_write(&without, UINT32_MAX, &body);
    ranges_free(&without);
    view_send(v, v->env.self, &body);
}

void change_retry(struct view *v)
{
    struct ranges lost = {0}, ended = {0};
    if (view_lowest(v) != v->env.self)
        return;
    view_unite(v, &lost, &v->mine_lost);
    for (struct ranges_at at = {0}; ranges_next(&v->mine_left, &at);)
        if (ranges_have(&lost, at.number))
            view_put(v, &ended, at.number);
    change_propose(v, &lost, &ended);
    ranges_free(&lost);
    ranges_free(&ended);
}

static void nack(struct view *v, uint32_t node, struct view_name ballot, struct view_name higher)
{
    struct wire_out body = {0};
    put_ballot(&body, VIEW_NACK, ballot);
    view_put_name(&body, higher);
    view_send(v, node, &body);
}

/* This server has promised another proposer to wait for its commit, and takes a higher ballot: it
 * would wait for our state. */
static void break_promise(struct view *v, struct view_name ballot)
{
    if (!view_name_is(v->promised, v->name) && !view_name_is(v->promised, ballot) &&
        v->promised.proposer != ballot.proposer)
        nack(v, v->promised.proposer, v->promised, ballot);
}

/* Once the states of all children are there: passes them up, or commits. */
static void merge(struct view *v)
{
    struct wire_out body = {0};
    if (v->awaited.n > 0 || !v->frozen)
        return;
    timer_stop(&v->patience);
    unite_own(v, &v->known);
    if (v->over)
        return;
    uint32_t above = span_parent(&v->members, v->env.self);
    if (above != VIEW_NOBODY) {
        put_ballot(&body, VIEW_STATE, v->promised);
        known_write(&v->known, &body);
        view_send(v, above, &body);
    } else if (view_name_is(v->mine, v->promised)) {
        view_unite(v, &v->known.out, &v->mine_lost);
        view_unite(v, &v->known.out, &v->mine_left);
        view_unite(v, &v->known.left, &v->mine_left);
        put_ballot(&body, VIEW_COMMIT, v->mine);
        ranges_write(&v->members_out, UINT32_MAX, &body);
        ranges_write(&v->mine_lost, UINT32_MAX, &body);
        known_write(&v->known, &body);
        view_send(v, v->env.self, &body);
    }
    known_free(&v->known);
}

static void take_propose(struct view *v, struct wire_in *in, const void *body, size_t len)
{
    struct ranges without = {0};
    struct span members = {0};
    struct view_name ballot = view_get_name(in);
    ranges_read(&without, v->env.nnodes - 1, in);
    bool good = wire_end(in) && ballot.proposer < v->env.nnodes &&
                span_make(&members, v->env.nnodes, &without, ballot.proposer, v->env.arity) &&
                span_has(&members, v->env.self);
    if (!good) { /* malformed, or not for us */
        if (!in->bad && members.v == NULL && ballot.proposer < v->env.nnodes)
            view_broken(v);
    } else if (ranges_have(&v->out, ballot.proposer)) {
        view_tell_out(v, ballot.proposer);
    } else if (ballot.proposer == v->env.self && !view_name_is(v->mine, ballot)) {
        /* we have proposed again since */
    } else if (!view_name_above(ballot, v->promised)) {
        nack(v, ballot.proposer, ballot, v->promised);
    } else {
        struct wire_out copy = {.data = (unsigned char *)(uintptr_t)body, .len = len};
        struct span before = v->members;
        struct ranges out = v->members_out;
        break_promise(v, ballot);
        v->promised = ballot;
        v->frozen = true;
        v->members = members;
        members = before;
        v->members_out = without;
        without = out;
        known_free(&v->known);
        ranges_free(&v->awaited);
        if (!view_name_is(v->mine, ballot))
            drop_mine(v);
        view_send_down(v, &v->members, &copy);
        for (uint32_t i = 0, child; i < v->env.arity; i++)
            if ((child = span_child(&v->members, v->env.self, i)) != VIEW_NOBODY)
                view_put(v, &v->awaited, child);
        ranges_free(&v->asked);
        timer_after(&v->patience, VIEW_PATIENCE_MS);
        merge(v);
    }
    span_free(&members);
    ranges_free(&without);
}

static uint64_t retry_hash(const struct view *v)
{
    return (v->highest.number * 31 + v->env.self + 1) * 0x9e3779b97f4a7c15u >> 32;
}

static void take_nack(struct view *v, struct wire_in *in)
{
    struct view_name ballot = view_get_name(in), higher = view_get_name(in);
    if (!wire_end(in) || is_none(ballot) ||
        (!view_name_is(ballot, v->name) && !view_name_is(ballot, v->mine)))
        return;
    if (view_name_above(higher, v->highest))
        v->highest = higher;
    if (timer_runs(&v->retry))
        return;
    /* Two that refuse each other's proposals wait longer each time, and not equally long. */
    int64_t most = (int64_t)VIEW_RETRY_MS << v->refusals;
    v->refusals += v->refusals < VIEW_REFUSALS_MAX;
    timer_after(&v->retry, most + (int64_t)(retry_hash(v) % (uint64_t)most));
}

void change_look(struct view *v, struct ranges *silent)
{
    for (struct ranges_at at = {0}; ranges_next(&v->awaited, &at);) {
        struct wire_out body = {0};
        if (ranges_have(&v->asked, at.number)) {
            view_put(v, silent, at.number);
            continue;
        }
        view_put(v, &v->asked, at.number);
        wire_put_u8(&body, VIEW_PING);
        wire_put_u32(&body, v->env.self);
        wire_put_u32(&body, at.number);
        view_send(v, at.number, &body);
    }
    if (v->awaited.n > 0)
        timer_after(&v->patience, VIEW_PATIENCE_MS);
}

void change_lives(struct view *v, uint32_t node)
{
    view_take_out(v, &v->asked, node);
}

static void take_state(struct view *v, uint32_t from, struct wire_in *in)
{
    struct known state = {.words = TAILQ_HEAD_INITIALIZER(state.words)};
    struct view_name ballot = view_get_name(in);
    known_read(v, &state, in);
    if (!in->bad && view_name_is(ballot, v->promised) && v->frozen &&
        ranges_have(&v->awaited, from)) {
        view_take_out(v, &v->awaited, from);
        known_unite(v, &v->known, &state);
        merge(v);
    }
    known_free(&state);
}

/* ---- a commit ---- */

/* The parts of its body. */
struct commit {
    struct view_name ballot;
    struct ranges without, newly;
    struct known known;
    struct span members;
};

static bool read_commit(struct view *v, struct commit *c, struct wire_in *in)
{
    TAILQ_INIT(&c->known.words);
    c->ballot = view_get_name(in);
    ranges_read(&c->without, v->env.nnodes - 1, in);
    ranges_read(&c->newly, v->env.nnodes - 1, in);
    known_read(v, &c->known, in);
    return !in->bad && c->ballot.proposer < v->env.nnodes &&
           span_make(&c->members, v->env.nnodes, &c->without, c->ballot.proposer, v->env.arity);
}

/* Servers that are to hear of the change by another way than the tree: those that are left out (by
 * the proposer and its children, since it may end before it tells them), and those that have
 * accused a server which is out now and was to hand the commit on to them. */
static void tell_others(struct view *v, const struct commit *c)
{
    struct ranges outside = {0}, behind = {0};
    if (c->ballot.proposer == v->env.self ||
        span_parent(&c->members, v->env.self) == c->ballot.proposer)
        view_unite(v, &outside, &c->newly);
    for (uint32_t i = 0; i < v->npairs; i++) {
        const struct pair *pair = &v->pairs[i];
        if (ranges_have(&v->out, pair->by))
            view_add(v, &outside, pair->by);
        else if (ranges_have(&v->out, pair->node) && pair->by != v->env.self)
            view_add(v, &behind, pair->by);
    }
    ranges_canonical(&outside);
    ranges_canonical(&behind);
    for (struct ranges_at at = {0}; ranges_next(&outside, &at);)
        view_tell_out(v, at.number);
    for (struct ranges_at at = {0}; ranges_next(&behind, &at);)
        view_send_bytes(v, at.number, v->last_commit->data, v->last_commit->len);
    ranges_free(&outside);
    ranges_free(&behind);
}

/* @return those of @p now that are not in @p before, and are in @p of, or are not if @p without */
static struct ranges news(struct view *v, const struct ranges *now, const struct ranges *before,
                          const struct ranges *of, bool without)
{
    struct ranges set = {0};
    for (struct ranges_at at = {0}; ranges_next(now, &at);)
        if (!ranges_have(before, at.number) && ranges_have(of, at.number) != without)
            view_add(v, &set, at.number);
    return set; /* canonical: the walk ascends */
}

static void enter(struct view *v, struct commit *c, const void *body, size_t len)
{
    struct ranges lost = news(v, &c->known.out, &v->out, &c->known.left, true);
    struct ranges left = news(v, &c->known.out, &v->out, &c->known.left, false);
    break_promise(v, c->ballot);
    drop_mine(v);
    timer_stop(&v->flush);
    v->promised = v->name = c->ballot;
    v->refusals = 0;
    shared_bytes_drop(v->last_commit);
    v->last_commit = shared_bytes_copy(body, len);
    view_unite(v, &v->go, &left);
    view_unite(v, &v->out, &c->known.out);
    view_unite(v, &v->left, &c->known.left);
    if (v->last_commit == NULL || !view_plant(v))
        view_broken(v);
    if (!v->over)
        tell_others(v, c);
    for (uint32_t i = 0; i < v->npairs; i++)
        v->pairs[i].told = VIEW_NOBODY;
    ranges_free(&v->leavers);
    gather_forget(v);
    view_words_enter(v, &c->known.words);
    if (!v->over)
        v->env.changed(v->env.arg, &lost, &left);
    v->frozen = false;
    ranges_free(&lost);
    ranges_free(&left);
    if (v->over)
        return;
    view_words_again(v);
    gather_again(v);
    STAILQ_CONCAT(&v->own, &v->early);
    v->early_bytes = 0;
    v->look = true;
}

static void take_commit(struct view *v, uint32_t from, struct wire_in *in, const void *body,
                        size_t len)
{
    struct commit c = {0};
    if (!read_commit(v, &c, in)) {
        if (!in->bad && c.members.v == NULL && c.ballot.proposer < v->env.nnodes)
            view_broken(v); /* else it is malformed */
    } else if (view_name_above(v->promised, c.ballot)) {
        nack(v, from, c.ballot, v->promised);
        if (c.ballot.proposer != from)
            nack(v, c.ballot.proposer, c.ballot, v->promised);
    } else if (!view_name_is(c.ballot, v->name)) {
        struct wire_out copy = {.data = (unsigned char *)(uintptr_t)body, .len = len};
        if (span_has(&c.members, v->env.self))
            view_send_down(v, &c.members, &copy);
        if (!ranges_have(&c.known.out, v->env.self))
            enter(v, &c, body, len);
        else if (!ranges_have(&c.known.left, v->env.self))
            view_end(v, VIEW_LEFT_OUT,
                     "the others have gone on without it, as it could not be reached");
        else if (ranges_count(&c.known.out) == v->env.nnodes)
            view_end(v, VIEW_ALL_GO, "");
        /* else it stays until all have entered that view: its commit may be lost */
    }
    ranges_free(&c.without);
    ranges_free(&c.newly);
    known_free(&c.known);
    span_free(&c.members);
}

/* ---- being left out ---- */

/* Of two views that exclude each other the heavier one stays. A server of both counts for the
 * higher ballot: it has promised that one, so it cannot enter the other any more. */
static bool outweighs(const struct view *v, struct view_name view, const struct ranges *out)
{
    bool above = view_name_above(v->name, view);
    uint32_t mine = 0, other = 0, first = VIEW_NOBODY;
    for (uint32_t node = 0; node < v->env.nnodes; node++) {
        bool here = span_has(&v->live, node), there = !ranges_have(out, node);
        if (there && first == VIEW_NOBODY)
            first = node;
        mine += here && (above || !there);
        other += there && (!above || !here);
    }
    return mine != other ? mine > other : view_head(v) < first;
}

static void take_outcast(struct view *v, uint32_t from, struct wire_in *in)
{
    struct ranges out = {0};
    bool left = wire_get_u8(in) != 0;
    struct view_name view = view_get_name(in);
    ranges_read(&out, v->env.nnodes - 1, in);
    if (!wire_end(in) || !ranges_have(&out, v->env.self)) {
        /* malformed */
    } else if (ranges_have(&v->out, from) && outweighs(v, view, &out)) {
        view_tell_out(v, from);
    } else if (left) {
        view_end(v, VIEW_LET_GO, "");
    } else {
        view_end(v, VIEW_LEFT_OUT,
                 "the others have gone on without it, as it could not be reached");
    }
    ranges_free(&out);
}

/* ---- the part ---- */

void change_take(struct view *v, uint32_t from, enum view_kind kind, struct wire_in *in,
                 const void *body, size_t len)
{
    switch (kind) {
    case VIEW_PROPOSE:
        take_propose(v, in, body, len);
        break;
    case VIEW_NACK:
        take_nack(v, in);
        break;
    case VIEW_STATE:
        take_state(v, from, in);
        break;
    case VIEW_COMMIT:
        take_commit(v, from, in, body, len);
        break;
    case VIEW_OUTCAST:
        take_outcast(v, from, in);
        break;
    default:
        break;
    }
}

void change_init(struct view *v)
{
    TAILQ_INIT(&v->known.words);
}

void change_free(struct view *v)
{
    known_free(&v->known);
    drop_mine(v);
    ranges_free(&v->awaited);
    ranges_free(&v->asked);
    ranges_free(&v->members_out);
    ranges_free(&v->go);
    ranges_free(&v->leavers);
    span_free(&v->members);
    shared_bytes_drop(v->last_commit);
}
