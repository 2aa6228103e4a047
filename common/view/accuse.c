/* SPDX-License-Identifier: BSD-3-Clause */
/* Accusations: who cannot reach whom, and whom the head leaves out for that. docs/view.md, "The
 * view". */
#include "common/view/private.h"

#include <stdlib.h>
#include <string.h>

enum { PAIR_BYTES = 9 }; /* on the wire */

static uint32_t lower(const struct pair *pair)
{
    return pair->by < pair->node ? pair->by : pair->node;
}

static uint32_t higher(const struct pair *pair)
{
    return pair->by < pair->node ? pair->node : pair->by;
}

static int by_pair(const struct pair *a, const struct pair *b)
{
    if (lower(a) != lower(b))
        return lower(a) < lower(b) ? -1 : 1;
    if (higher(a) != higher(b))
        return higher(a) < higher(b) ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* @return where the pair is, or has to be */
static uint32_t place_of(const struct view *v, const struct pair *pair)
{
    uint32_t low = 0, high = v->npairs;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_pair(pair, &v->pairs[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void accuse_add(struct view *v, uint32_t by, uint32_t node, bool left)
{
    const struct pair pair = {.by = by, .node = node, .told = VIEW_NOBODY, .left = left};
    if (by == node || by >= v->env.nnodes || node >= v->env.nnodes || ranges_have(&v->out, by) ||
        ranges_have(&v->out, node))
        return;
    uint32_t at = place_of(v, &pair);
    if (at < v->npairs && by_pair(&pair, &v->pairs[at]) == 0)
        return;
    if (v->npairs == v->pairs_cap) {
        uint32_t cap = v->pairs_cap > 0 ? 2 * v->pairs_cap : 16;
        struct pair *pairs = realloc(v->pairs, cap * sizeof *pairs);
        if (pairs == NULL) {
            view_broken(v);
            return;
        }
        v->pairs = pairs;
        v->pairs_cap = cap;
    }
    memmove(&v->pairs[at + 1], &v->pairs[at], (v->npairs - at) * sizeof pair);
    v->pairs[at] = pair;
    v->npairs++;
    v->look = true;
}

void accuse_own(struct view *v, uint32_t node, bool left)
{
    if (node == v->env.self || ranges_have(&v->unreachable, node) || ranges_have(&v->out, node))
        return;
    view_put(v, &v->unreachable, node);
    accuse_add(v, v->env.self, node, left);
}

static void tidy(struct view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->npairs; i++)
        if (!ranges_have(&v->out, v->pairs[i].by) && !ranges_have(&v->out, v->pairs[i].node))
            v->pairs[n++] = v->pairs[i];
    v->npairs = n;
}

/* ---- telling ---- */

/* @return whether others have accused all servers that are lower than this one, too */
static bool all_confirmed(struct view *v)
{
    struct ranges accused = {0};
    bool all = true;
    for (uint32_t i = 0; i < v->npairs; i++)
        if (v->pairs[i].by != v->env.self)
            view_add(v, &accused, v->pairs[i].node);
    ranges_canonical(&accused);
    for (uint32_t i = 0; i < v->live.n && v->live.v[i] < v->env.self && all; i++)
        all = ranges_have(&accused, v->live.v[i]);
    ranges_free(&accused);
    return all;
}

/* @return the lowest server that this one reaches. Not itself, while it alone does not reach a
 * lower one, and reaches another one */
static uint32_t whom_to_tell(struct view *v)
{
    uint32_t self = v->env.self, to = view_lowest(v), next = VIEW_NOBODY;
    if (to != self)
        return to;
    for (uint32_t i = 0; i < v->live.n && next == VIEW_NOBODY; i++)
        if (v->live.v[i] != self && !ranges_have(&v->unreachable, v->live.v[i]))
            next = v->live.v[i];
    return next == VIEW_NOBODY || all_confirmed(v) ? self : next;
}

static void put_pair(struct wire_out *body, uint32_t by, uint32_t node)
{
    wire_put_u32(body, by);
    wire_put_u32(body, node);
}

static void put_accusation(struct wire_out *body, uint32_t by, uint32_t node, bool left)
{
    put_pair(body, by, node);
    wire_put_u8(body, left);
}

static void tell(struct view *v, uint32_t to)
{
    struct wire_out body = {0};
    uint32_t n = 0;
    view_begin(v, &body, VIEW_ACCUSE);
    size_t at = body.len;
    wire_put_u32(&body, 0);
    for (uint32_t i = 0; i < v->npairs; i++) {
        if (v->pairs[i].told == to)
            continue;
        v->pairs[i].told = to;
        put_accusation(&body, v->pairs[i].by, v->pairs[i].node, v->pairs[i].left);
        n++;
    }
    if (n > 0 && !body.failed) {
        wire_set_u32(&body, at, n);
        view_send(v, to, &body);
    }
    wire_out_free(&body);
}

/* ---- deciding ---- */

static void ping(struct view *v, struct pair *pair)
{
    struct wire_out body = {0};
    pair->pinged = true;
    wire_put_u8(&body, VIEW_PING);
    put_pair(&body, pair->by, pair->node);
    view_send(v, pair->node, &body);
}

/* As the head: of two servers that do not reach each other the lower one stays, unless it goes
 * anyway. @param outs all zero */
static void whom_to_leave_out(struct view *v, struct ranges *outs)
{
    uint32_t self = v->env.self;
    for (uint32_t i = 0; i < v->npairs; i++)
        if (v->pairs[i].by == self || v->pairs[i].node == self)
            view_put(v, outs, v->pairs[i].by == self ? v->pairs[i].node : v->pairs[i].by);
    for (uint32_t i = 0; i < v->npairs; i++) {
        struct pair *pair = &v->pairs[i];
        if (pair->by == self || pair->node == self || ranges_have(outs, pair->by) ||
            ranges_have(outs, pair->node))
            continue;
        if (pair->reached)
            view_put(v, outs, higher(pair));
        else if (!pair->pinged)
            ping(v, pair);
    }
}

void accuse_act(struct view *v)
{
    struct ranges outs = {0}, ended = {0};
    bool news = false;
    tidy(v);
    uint32_t to = whom_to_tell(v);
    if (to != v->env.self) {
        tell(v, to);
        return;
    }
    whom_to_leave_out(v, &outs);
    for (struct ranges_at at = {0}; ranges_next(&outs, &at);)
        news |= v->mine.number == 0 || !ranges_have(&v->mine_lost, at.number);
    for (uint32_t i = 0; i < v->npairs && news; i++)
        if (v->pairs[i].left && ranges_have(&outs, v->pairs[i].node))
            view_put(v, &ended, v->pairs[i].node);
    if (news)
        change_propose(v, &outs, &ended);
    ranges_free(&outs);
    ranges_free(&ended);
}

/* ---- frames ---- */

static void take_accuse(struct view *v, uint32_t from, struct wire_in *in)
{
    struct view_name view = view_get_name(in);
    struct wire_out body = {0};
    bool older = view_name_above(v->name, view);
    uint32_t n = wire_get_count(in, PAIR_BYTES), nout = 0;
    view_begin(v, &body, VIEW_ACCUSE);
    size_t at = body.len;
    wire_put_u32(&body, 0);
    if (older && v->last_commit != NULL) /* the server that was to hand it on is lost */
        view_send_bytes(v, from, v->last_commit->data, v->last_commit->len);
    for (; n > 0 && !in->bad; n--) {
        uint32_t by = wire_get_u32(in), node = wire_get_u32(in);
        accuse_add(v, by, node, wire_get_u8(in) != 0);
        if (older && ranges_have(&v->out, node)) {
            put_accusation(&body, v->env.self, node, ranges_have(&v->left, node));
            nout++;
        }
    }
    if (nout > 0 && !body.failed) { /* when it may not take that commit it proposes itself */
        wire_set_u32(&body, at, nout);
        view_send(v, from, &body);
    }
    wire_out_free(&body);
}

static void take_pong(struct view *v, uint32_t from, struct wire_in *in)
{
    struct pair pair = {.by = wire_get_u32(in), .node = 0};
    pair.node = wire_get_u32(in);
    uint32_t at = place_of(v, &pair);
    change_lives(v, from);
    if (in->bad || from != pair.node || at == v->npairs || by_pair(&pair, &v->pairs[at]) != 0)
        return;
    v->pairs[at].reached = true;
    v->look = true;
}

void accuse_take(struct view *v, uint32_t from, enum view_kind kind, struct wire_in *in)
{
    struct wire_out body = {0};
    if (kind == VIEW_ACCUSE) {
        take_accuse(v, from, in);
    } else if (kind == VIEW_PONG) {
        take_pong(v, from, in);
    } else if (kind == VIEW_PING) {
        wire_put_u8(&body, VIEW_PONG);
        wire_put_raw(&body, in->p, (size_t)(in->end - in->p));
        view_send(v, from, &body);
    }
}
