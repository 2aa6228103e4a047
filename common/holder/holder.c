/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the holder's end: losses, time, its beginning and its end. holder.h has its
 * states. */
#include "common/holder/private.h"

#include "common/util/clock.h"

#include <stdlib.h>

enum { CHECK_MAX_MS = 300000 };

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
        client->gone = holder_now(holder);
    change_deputy(holder);
    bool followed =
        (holder->state == FOLLOWS || holder->state == GREETS || holder->state == SEEKS) &&
        node == holder->node;
    if (holder_is_deputy(holder) && followed) {
        holder->succeeds = true;
        holder_set_state(holder, RESTS);
        holder->since = holder->again = 0;
        holder->pause = 0; /* it may have sent us away before it was gone */
        holder->node = HOLDER_NONE;
        if (holder_is_needed(holder))
            seek_now(holder);
    }
    if (holder->again == 0)
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

int64_t holder_next(const struct holder *holder)
{
    const struct carry *c;
    int64_t at = holder->again;
    if (holder->closing)
        return -1;
    TAILQ_FOREACH (c, &holder->carries, link)
        if (!c->answered)
            at = earlier(at, c->deadline);
    if (holder->state == COLLECTS)
        at = earlier(at, holder->until);
    if (holder->state == HOLDS && holder->env.find != NULL && !holder->asked)
        at = earlier(at, holder->check);
    if (holder->state == FOLLOWS && store_counts(holder->kept).entries > 0)
        at = earlier(at, holder->ping);
    if (holder->state == HOLDS)
        at = earlier(at, desk_next(holder));
    return ms_until(at, holder_now(holder));
}

/* A request whose time is over, or that waits for a holder in vain. @return whether there was one
 */
static bool expire(struct holder *holder, int64_t now)
{
    const struct holder_codes *codes = &holder->env.codes;
    struct carry *c;
    bool vain = holder->since != 0 && now >= holder->since + VAIN_MS;
    TAILQ_FOREACH (c, &holder->carries, link) {
        bool late = c->deadline != 0 && c->deadline <= now;
        bool hopeless = vain && c->state == CARRY_QUEUED && c->op != HOLDER_LOOKUP;
        if (c->answered || !(late || hopeless))
            continue;
        carry_answer(c, late ? codes->timeout : codes->unreach, NULL, 0);
        return true;
    }
    return false;
}

static void check(struct holder *holder, int64_t now)
{
    uint32_t n = holder->checks++;
    holder->check = now + (n < sizeof checks / sizeof *checks ? checks[n] : CHECK_MAX_MS);
    seek_now(holder);
}

void holder_tick(struct holder *holder)
{
    int64_t now = holder_now(holder);
    if (holder->closing)
        return;
    while (expire(holder, now))
        ;
    if (holder->again != 0 && holder->again <= now) {
        holder->again = 0;
        if (holder_is_deputy(holder))
            seek_now(holder);
        else
            serve_queue(holder);
    }
    if (holder->state == COLLECTS && holder->until <= now)
        hold_begin(holder);
    if (holder->state == HOLDS && holder->env.find != NULL && holder->check <= now &&
        !holder->asked)
        check(holder, now);
    if (holder->state == HOLDS)
        desk_tick(holder, now);
    if (holder->state == FOLLOWS && holder->ping <= now) {
        holder->ping = now + PING_MS;
        if (store_counts(holder->kept).entries > 0)
            serve_ping(holder);
    }
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
        view.steps += client->gone == 0;
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
    carry_free_all(holder);
    while (!TAILQ_EMPTY(&holder->clients)) {
        struct client *client = TAILQ_FIRST(&holder->clients);
        TAILQ_REMOVE(&holder->clients, client, link);
        free(client);
    }
    store_free(holder->kept);
    store_free(holder->held);
    free(holder);
}
