/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the holder's end: losses, time, its beginning and its end. holder.h has its
 * states. */
#include "common/holder/private.h"

#include <stdlib.h>

enum {
    CHECK_MAX_MS = 300000,
    VAIN_AGAIN_MS = 2000, /* what comes when the holder was looked for in vain may wait so long */
};

/* ms: the second time and the third that a holder looks for an older one */
static const int64_t checks[] = {8000, 30000};

static void change_deputy(struct holder *holder)
{
    uint32_t deputy = holder_find_deputy(holder);
    if (deputy == holder->deputy)
        return;
    holder->deputy = deputy;
    holder->succeeds = true;
    if (holder_is_deputy(holder)) {
        if (holder_is_needed(holder))
            seek_now(holder);
    } else if (store_counts(holder->kept).entries > 0) {
        seek_greet(holder, deputy, holder_ignore);
    }
}

void holder_lost(struct holder *holder, uint32_t node)
{
    struct client *client = desk_client(holder, node);
    if (holder->closing)
        return;
    carry_forget(holder, node);
    if (client != NULL)
        desk_gone(client);
    change_deputy(holder);
    bool followed =
        (holder->state == FOLLOWS || holder->state == GREETS || holder->state == SEEKS) &&
        node == holder->node;
    if (holder_is_deputy(holder) && followed) {
        holder->succeeds = true;
        holder_set_state(holder, RESTS);
        timer_stop(&holder->vain);
        timer_stop(&holder->again);
        holder->pause = 0; /* it may have sent us away before it was gone */
        holder->node = HOLDER_NONE;
        if (holder_is_needed(holder))
            seek_now(holder);
    }
    if (!timer_runs(&holder->again))
        serve_queue(holder);
}

void holder_ended(struct holder *holder, const char *nspace, uint32_t rank)
{
    struct wire_out out = {0};
    if (store_ended(holder->kept, nspace, rank) == 0 || holder->closing)
        return;
    wire_put_u8(&out, HOLDER_ENDED);
    wire_put_str(&out, nspace);
    wire_put_u32(&out, rank);
    if (!out.failed)
        holder_request(holder, out.data, out.len, VAIN_MS, holder_ignore, NULL);
    wire_out_free(&out);
}

/* A request that does not wait for data, and for which no holder was found. */
static bool is_hopeless(const struct carry *c)
{
    return !c->answered && c->state == CARRY_QUEUED && c->op != HOLDER_LOOKUP;
}

static void on_vain(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    struct carry *c;
    timer_after(timer, VAIN_AGAIN_MS);
    do {
        TAILQ_FOREACH (c, &holder->carries, link)
            if (is_hopeless(c))
                break;
        if (c != NULL)
            carry_answer(c, holder->env.codes.unreach, NULL, 0);
    } while (c != NULL);
}

static void on_again(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    (void)timer;
    if (holder_is_deputy(holder))
        seek_now(holder);
    else
        serve_queue(holder);
}

static void on_until(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    (void)timer;
    if (holder->state == COLLECTS)
        hold_begin(holder);
}

static void on_check(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    if (holder->state != HOLDS || holder->env.find == NULL || holder->asked)
        return; /* holder_found() starts it again */
    uint32_t n = holder->checks++;
    timer_after(timer, n < sizeof checks / sizeof *checks ? checks[n] : CHECK_MAX_MS);
    seek_now(holder);
}

static void on_ping(void *arg, struct timer *timer)
{
    struct holder *holder = arg;
    if (holder->state != FOLLOWS)
        return;
    timer_after(timer, PING_MS);
    if (store_counts(holder->kept).entries > 0)
        serve_ping(holder);
}

static void open_timers(struct holder *holder)
{
    struct timers *timers = holder->env.timers;
    timer_init(&holder->vain, timers, on_vain, holder);
    timer_init(&holder->again, timers, on_again, holder);
    timer_init(&holder->until, timers, on_until, holder);
    timer_init(&holder->check, timers, on_check, holder);
    timer_init(&holder->ping, timers, on_ping, holder);
}

static void stop_timers(struct holder *holder)
{
    timer_stop(&holder->vain);
    timer_stop(&holder->again);
    timer_stop(&holder->until);
    timer_stop(&holder->check);
    timer_stop(&holder->ping);
}

struct holder_view holder_view(const struct holder *holder)
{
    const struct carry *c;
    const struct client *client;
    bool holds = holder_is_holder(holder);
    struct holder_view view = {.state =
                                   holder_is_deputy(holder) ? holder_state_name(holder) : "sends",
                               .node = holds                      ? holder->env.self
                                       : holder->state == FOLLOWS ? holder->node
                                                                  : HOLDER_NONE,
                               .kept = store_counts(holder->kept),
                               .held = store_counts(holder->held)};
    TAILQ_FOREACH (c, &holder->carries, link)
        view.waiting += !c->answered;
    TAILQ_FOREACH (client, &holder->clients, link)
        view.steps += !client->gone;
    return view;
}

struct holder *holder_new(const struct holder_env *env)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL)
        return NULL;
    holder->env = *env;
    holder->node = HOLDER_NONE;
    holder->came = serve_answer;
    holder->serve = serve_queue;
    open_timers(holder);
    TAILQ_INIT(&holder->carries);
    TAILQ_INIT(&holder->clients);
    holder->deputy = env->self == 0 ? 0 : holder_find_deputy(holder);
    holder->kept = store_new();
    holder->held = store_new();
    if (holder->kept != NULL && holder->held != NULL)
        return holder;
    holder_free(holder);
    return NULL;
}

void holder_close(struct holder *holder)
{
    struct carry *c;
    holder->closing = true;
    stop_timers(holder);
    do {
        TAILQ_FOREACH (c, &holder->carries, link)
            if (!c->answered)
                break;
        if (c != NULL)
            carry_answer(c, c->from == holder->env.self ? holder->env.codes.unreach : HOLDER_AGAIN,
                         NULL, 0);
    } while (c != NULL);
}

void holder_free(struct holder *holder)
{
    if (holder == NULL)
        return;
    stop_timers(holder);
    carry_free_all(holder);
    while (!TAILQ_EMPTY(&holder->clients))
        desk_free(holder, TAILQ_FIRST(&holder->clients));
    store_free(holder->kept);
    store_free(holder->held);
    free(holder);
}
