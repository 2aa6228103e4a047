/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers that leave in order: all of them at once, or some by a change. docs/view.md, "Leaving".
 */
#include "common/view/private.h"

static void send_wish(struct view *v)
{
    struct wire_out body = {0};
    view_begin(v, &body, VIEW_WISH);
    ranges_write(&v->leavers, UINT32_MAX, &body);
    view_send(v, v->above, &body);
}

/* Passes on who of the subtree wants to leave: at once when all do, else with those that do so
 * within a moment. Each level waits half as long as the one below, so all of them together no
 * longer than VIEW_LEAVERS_MS, however many there are. */
static void tell_leavers(struct view *v)
{
    struct wire_out body = {0};
    bool all = ranges_count(&v->leavers) == span_below(&v->live, v->env.self);
    if (v->frozen || v->leavers.n == 0)
        return; /* they say so again in the next view */
    if (!all) {
        if (!timer_runs(&v->flush))
            timer_after(&v->flush, VIEW_LEAVERS_MS >> (span_levels(&v->live, v->env.self) - 1));
        return;
    }
    timer_stop(&v->flush);
    if (v->above != VIEW_NOBODY) {
        send_wish(v);
        return;
    }
    view_begin(v, &body, VIEW_EMPTY);
    view_send(v, v->env.self, &body);
}

void leavers_flush(struct view *v)
{
    const struct ranges none = {0};
    if (v->frozen || v->mine.number != 0)
        return;
    if (v->above == VIEW_NOBODY)
        change_propose(v, &none, &none);
    else
        send_wish(v);
}

void leavers_add_own(struct view *v)
{
    view_put(v, &v->leavers, v->env.self);
    tell_leavers(v);
}

static void take_wish(struct view *v, struct wire_in *in)
{
    struct ranges who = {0};
    ranges_read(&who, v->env.nnodes - 1, in);
    if (wire_end(in)) {
        view_unite(v, &v->leavers, &who);
        tell_leavers(v);
    }
    ranges_free(&who);
}

static void take_empty(struct view *v, const void *body, size_t len)
{
    const struct wire_out copy = {.data = (unsigned char *)(uintptr_t)body, .len = len};
    view_send_down(v, &v->live, &copy);
    view_end(v, VIEW_ALL_GO, "");
}

void leavers_take(struct view *v, enum view_kind kind, struct wire_in *in, const void *body,
                  size_t len)
{
    if (kind == VIEW_WISH)
        take_wish(v, in);
    else if (kind == VIEW_EMPTY)
        take_empty(v, body, len);
}

void leavers_let_go(struct view *v)
{
    if (view_head(v) == v->env.self)
        for (struct ranges_at at = {0}; ranges_next(&v->go, &at);)
            view_tell_out(v, at.number);
    ranges_free(&v->go);
    shared_bytes_drop(v->last_commit);
    v->last_commit = NULL;
}
