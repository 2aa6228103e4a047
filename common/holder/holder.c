/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the holder's end: losses, time, its beginning and its end. holder.h has its
 * states. */
#include "common/holder/private.h"

#include <stdlib.h>

enum { LOOKS_MAX = 30 /* between looks whether an older step has a holder */ };

void holder_lost(struct holder *holder, uint32_t node)
{
    if (holder->closing)
        return;
    request_forget(holder, node);
    desk_lost(holder, node);
    seek_hold(holder);
    bool followed = (holder->state == FOLLOWS || holder->state == SEEKS) && node == holder->node;
    if (followed && holder_is_head(holder)) {
        holder_set_state(holder, RESTS);
        timer_stop(&holder->again);
        seek_ends(holder); /* it may have sent us away before it was gone */
        holder->node = HOLDER_NONE;
        if (holder_is_needed(holder))
            seek_now(holder);
    }
    holder_turn(holder);
}

void holder_other(struct holder *holder, uint32_t node)
{
    if (node != HOLDER_NONE && holder_is_holder(holder))
        desk_meet(holder, node);
    else if (node == HOLDER_NONE && holder->listings > 0)
        holder->listings--;
    seek_hold(holder);
    holder_turn(holder);
}

static void ignore(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
}

void holder_ended(struct holder *holder, const char *nspace, uint32_t rank)
{
    struct wire_out out = {0};
    if (store_ended(holder->store, nspace, rank) == 0 || holder->closing)
        return;
    wire_put_u8(&out, HOLDER_ENDED);
    wire_put_str(&out, nspace);
    wire_put_u32(&out, rank);
    holder_request(holder, out.data, out.len, VAIN_MS, ignore, NULL);
    wire_out_free(&out);
}

static void on_turn(void *arg, struct timer *timer)
{
    (void)timer;
    serve_turn(arg);
}

static void on_again(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    (void)timer;
    if (holder->state == SEEKS)
        seek_now(holder);
    holder_turn(holder);
}

static void on_until(void *arg, struct timer *timer)
{
    (void)timer;
    seek_hold(arg);
}

/* Two holders hear of each other when the later one begins, or by a step that both serve. Where the
 * resource manager could not reach an older step at that moment, it is asked again, more and more
 * seldom. */
static void on_look(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    if (holder->state == FOLLOWS) {
        timer_after(timer, QUIET_MS);
        if (holder_first(holder) != NULL)
            request_tell_op(holder, holder->node, HOLDER_JOIN);
    }
    if (holder->state != HOLDS)
        return;
    timer_after(timer, LOOK_MS);
    desk_look(holder);
    if (++holder->looks >= holder->next_look) {
        holder->next_look += holder->looks < LOOKS_MAX ? holder->looks : LOOKS_MAX;
        seek_now(holder);
    }
}

static void stop_timers(struct holder *holder)
{
    timer_stop(&holder->turn);
    timer_stop(&holder->again);
    timer_stop(&holder->until);
    timer_stop(&holder->look);
}

struct holder_view holder_view(const struct holder *holder)
{
    const struct request *r;
    const struct client *client;
    bool holds = holder_is_holder(holder);
    struct holder_view view = {
        .state = holder_is_head(holder) ? holder_state_name(holder) : "sends",
        .node = holds                      ? holder->env.self
                : holder->state == FOLLOWS ? holder->node
                                           : HOLDER_NONE,
    };
    const struct store_entry *e = store_first(holder->store);
    for (; e != NULL; e = TAILQ_NEXT(e, link))
        view.kept += e->keeper == NULL;
    if (holds)
        view.held = store_counts(holder->store);
    TAILQ_FOREACH (r, &holder->requests, link)
        view.waiting += !r->answered && !r->word;
    TAILQ_FOREACH (client, &holder->clients, link)
        view.steps++;
    return view;
}

struct holder *holder_new(const struct holder_env *env)
{
    struct holder *holder = calloc(1, sizeof *holder);
    holder->env = *env;
    holder->node = holder->heir = HOLDER_NONE;
    holder->came = serve_answer;
    timer_init(&holder->turn, env->timers, on_turn, holder);
    timer_init(&holder->again, env->timers, on_again, holder);
    timer_init(&holder->until, env->timers, on_until, holder);
    timer_init(&holder->look, env->timers, on_look, holder);
    TAILQ_INIT(&holder->requests);
    TAILQ_INIT(&holder->clients);
    holder->head = env->head(env->arg);
    holder->store = store_new();
    return holder;
}

void holder_close(struct holder *holder)
{
    struct request *r;
    holder->closing = true;
    stop_timers(holder);
    TAILQ_FOREACH (r, &holder->requests, link)
        if (!r->answered && !r->word)
            request_answer(
                r, r->from == holder->env.self ? holder->env.codes.unreach : HOLDER_AGAIN, NULL, 0);
}

void holder_free(struct holder *holder)
{
    if (holder == NULL)
        return;
    stop_timers(holder);
    while (!TAILQ_EMPTY(&holder->requests))
        request_free(TAILQ_FIRST(&holder->requests));
    while (!TAILQ_EMPTY(&holder->clients))
        desk_free(holder, TAILQ_FIRST(&holder->clients));
    store_free(holder->store);
    free(holder);
}
