/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of views, trees over servers, and frames to them. */
#include "common/view/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

bool view_name_is(struct view_name a, struct view_name b)
{
    return a.number == b.number && a.proposer == b.proposer;
}

bool view_name_above(struct view_name a, struct view_name b)
{
    return a.number != b.number ? a.number > b.number : a.proposer > b.proposer;
}

void view_put_name(struct wire_out *out, struct view_name name)
{
    wire_put_u64(out, name.number);
    wire_put_u32(out, name.proposer);
}

struct view_name view_get_name(struct wire_in *in)
{
    struct view_name name;
    name.number = wire_get_u64(in);
    name.proposer = wire_get_u32(in);
    return name;
}

/* ---- a tree over servers ---- */

void span_free(struct span *span)
{
    free(span->v);
    *span = (struct span){0};
}

bool span_make(struct span *span, uint32_t nnodes, const struct ranges *without, uint32_t root,
               uint32_t arity)
{
    uint32_t *v = malloc(nnodes * sizeof *v), n = 0, at = VIEW_NOBODY;
    for (uint32_t node = 0; v != NULL && node < nnodes; node++) {
        if (ranges_have(without, node))
            continue;
        if (node == root || (root == VIEW_NOBODY && n == 0))
            at = n;
        v[n++] = node;
    }
    span_free(span);
    *span = (struct span){.v = v, .n = n, .root = at, .arity = arity};
    return v != NULL && at != VIEW_NOBODY;
}

/* @return its place, 0 for the root; VIEW_NOBODY: it has none */
static uint32_t place_of(const struct span *span, uint32_t node)
{
    uint32_t low = 0, high = span->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (node > span->v[middle])
            low = middle + 1;
        else
            high = middle;
    }
    if (low == span->n || span->v[low] != node)
        return VIEW_NOBODY;
    return low == span->root ? 0 : low < span->root ? low + 1 : low;
}

static uint32_t at_place(const struct span *span, uint64_t place)
{
    if (place >= span->n)
        return VIEW_NOBODY;
    return span->v[place == 0 ? span->root : place <= span->root ? place - 1 : place];
}

bool span_has(const struct span *span, uint32_t node)
{
    return place_of(span, node) != VIEW_NOBODY;
}

uint32_t span_parent(const struct span *span, uint32_t node)
{
    uint32_t place = place_of(span, node);
    return place == 0 || place == VIEW_NOBODY ? VIEW_NOBODY
                                              : at_place(span, (place - 1) / span->arity);
}

uint32_t span_child(const struct span *span, uint32_t node, uint32_t i)
{
    uint32_t place = place_of(span, node);
    return place == VIEW_NOBODY || i >= span->arity
               ? VIEW_NOBODY
               : at_place(span, (uint64_t)place * span->arity + 1 + i);
}

uint32_t span_below(const struct span *span, uint32_t node)
{
    uint64_t first = place_of(span, node), last = first, n = 0;
    while (first < span->n) { /* a level of the subtree after another */
        n += (last < span->n ? last : span->n - 1) - first + 1;
        first = first * span->arity + 1;
        last = last * span->arity + span->arity;
    }
    return (uint32_t)n;
}

uint32_t span_levels(const struct span *span, uint32_t node)
{
    uint32_t n = 0;
    for (; node != VIEW_NOBODY; node = span_child(span, node, 0))
        n++;
    return n;
}

bool view_plant(struct view *v)
{
    uint32_t child;
    if (!span_make(&v->live, v->env.nnodes, &v->out, VIEW_NOBODY, v->env.arity))
        return false;
    if (v->below == NULL && (v->below = calloc(v->env.arity, sizeof *v->below)) == NULL)
        return false;
    v->above = span_parent(&v->live, v->env.self);
    v->nbelow = 0;
    while ((child = span_child(&v->live, v->env.self, v->nbelow)) != VIEW_NOBODY)
        v->below[v->nbelow++] = child;
    return true;
}

/* ---- frames ---- */

void view_end(struct view *v, enum view_over how, const char *why)
{
    v->over = true;
    v->env.over(v->env.arg, how, why);
}

void view_broken(struct view *v)
{
    if (!v->over)
        view_end(v, VIEW_LEFT_OUT, "out of memory");
}

void view_unite(struct view *v, struct ranges *set, const struct ranges *more)
{
    if (ranges_unite(set, more) != 0)
        view_broken(v);
    ranges_canonical(set);
}

void view_put(struct view *v, struct ranges *set, uint32_t node)
{
    if (ranges_put(set, node) != 0)
        view_broken(v);
}

void view_add(struct view *v, struct ranges *set, uint32_t node)
{
    if (ranges_add(set, node, node) != 0)
        view_broken(v);
}

void view_take_out(struct view *v, struct ranges *set, uint32_t node)
{
    struct ranges rest = {0};
    for (struct ranges_at at = {0}; ranges_next(set, &at);)
        if (at.number != node)
            view_put(v, &rest, at.number);
    ranges_free(set);
    *set = rest;
}

/* Whether the receiver has been given up, here or by all. */
static bool is_for_outside(const struct wire_out *body)
{
    return body->data[0] == VIEW_OUTCAST || body->data[0] == VIEW_REFUSED;
}

void view_send(struct view *v, uint32_t node, struct wire_out *body)
{
    size_t len;
    if (body->failed) {
        wire_out_free(body);
        view_broken(v);
    } else if (node != v->env.self) {
        v->env.send(v->env.arg, node, is_for_outside(body) ? FRAME_OUTSIDE : FRAME_VIEW, body);
    } else {
        unsigned char *bytes = wire_out_take(body, &len);
        struct kept_frame *frame = malloc(sizeof *frame + len);
        if (frame == NULL) {
            view_broken(v);
        } else {
            frame->from = node;
            frame->len = len;
            memcpy(frame->body, bytes, len);
            STAILQ_INSERT_TAIL(&v->own, frame, entry);
        }
        free(bytes);
    }
}

void view_send_bytes(struct view *v, uint32_t node, const void *bytes, size_t len)
{
    struct wire_out body = {0};
    wire_put_raw(&body, bytes, len);
    view_send(v, node, &body);
}

void view_send_down(struct view *v, const struct span *span, const struct wire_out *body)
{
    if (body->failed)
        view_broken(v);
    for (uint32_t i = 0, child; i < span->arity && !v->over; i++)
        if ((child = span_child(span, v->env.self, i)) != VIEW_NOBODY)
            view_send_bytes(v, child, body->data, body->len);
}

void view_begin(const struct view *v, struct wire_out *body, enum view_kind kind)
{
    wire_put_u8(body, kind);
    view_put_name(body, v->name);
}

void view_tell_out(struct view *v, uint32_t node)
{
    struct wire_out body = {0};
    wire_put_u8(&body, VIEW_OUTCAST);
    wire_put_u8(&body, ranges_have(&v->left, node));
    view_put_name(&body, v->name);
    ranges_write(&v->out, UINT32_MAX, &body);
    view_send(v, node, &body);
}

uint32_t view_lowest(const struct view *v)
{
    for (uint32_t i = 0; i < v->live.n; i++)
        if (!ranges_have(&v->unreachable, v->live.v[i]))
            return v->live.v[i];
    return v->env.self;
}

bool view_has(const struct view *v, uint32_t node)
{
    return node < v->env.nnodes && !ranges_have(&v->out, node);
}

uint32_t view_heir(const struct view *v)
{
    return v->above != VIEW_NOBODY ? v->above : v->nbelow > 0 ? v->below[0] : v->env.self;
}

uint32_t view_head(const struct view *v)
{
    return v->live.v[v->live.root];
}
