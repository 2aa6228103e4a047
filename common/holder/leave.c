/* SPDX-License-Identifier: BSD-3-Clause */
/* A deputy that ends in order tells the next server of its step, which may go on, what the step has
 * published. And it hands over what outlives the step and no other server would say: what
 * processes that have ended published until it is unpublished or read.
 *
 * That goes to the holder. The holder gives it to a deputy of another step; where it knows none, it
 * asks for the other steps, and without any it gives it to the next server of its own step. An heir
 * keeps it as if its own step had published it. One that leaves, too, declines, and a holder that
 * has done so is looked for anew.
 */
#include "common/holder/private.h"

enum { HAND_MS = 3000 }; /* for an heir to be found */

static bool outlives(const void *arg, const struct store_entry *e)
{
    (void)arg;
    return store_outlives(e);
}

static bool has_to(const struct holder *holder)
{
    for (const struct store_entry *e = store_first(holder->kept); e != NULL;
         e = TAILQ_NEXT(e, link))
        if (store_outlives(e))
            return true;
    return false;
}

/* @return the next server of the own step */
static uint32_t find_next(const struct holder *holder)
{
    for (uint32_t node = holder->env.self + 1; node < holder->env.nnodes; node++)
        if (!holder->env.is_lost(holder->env.arg, node))
            return node;
    return HOLDER_NONE;
}

/* Whether other steps may be named yet; once they are asked for, holder_other() has them. */
static bool asks_for_others(struct holder *holder)
{
    const struct holder_env *env = &holder->env;
    if (holder->heirs == HEIRS_NOT_ASKED) {
        holder->heirs = HEIRS_ASKED;
        if (env->others == NULL || !env->others(env->arg))
            holder->heirs = HEIRS_NAMED;
    }
    return holder->heirs == HEIRS_ASKED;
}

/* @return HOLDER_NONE: there is none now */
static uint32_t find_heir(const struct holder *holder)
{
    const struct client *client;
    if (holder->state == FOLLOWS || holder->state == GREETS) /* one that still collects takes it */
        return holder->node;
    if (!holder_is_holder(holder))
        return HOLDER_NONE;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (!client->gone && !holder->env.is_lost(holder->env.arg, client->node))
            return client->node;
    return holder->declined || holder->heirs != HEIRS_NAMED ? HOLDER_NONE : find_next(holder);
}

static void taken(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    struct client *client = desk_client(holder, holder->heir);
    (void)data, (void)len;
    if (holder->closing || holder->leave != LEAVE_AWAITS)
        return;
    holder->leave = status == holder->env.codes.success ? LEAVE_DONE : LEAVE_OFFERS;
    if (holder->leave == LEAVE_DONE)
        return;
    if (client != NULL)
        desk_gone(client);
    else if (holder_is_own(holder, holder->heir))
        holder->declined = true;
    else if ((holder->state == FOLLOWS || holder->state == GREETS) && holder->node == holder->heir)
        seek_later(holder);
    leave_offer(holder);
}

void leave_offer(struct holder *holder)
{
    struct wire_out out = {0};
    uint32_t heir = find_heir(holder);
    if (heir == HOLDER_NONE && holder->leave == LEAVE_OFFERS && holder_is_holder(holder) &&
        !asks_for_others(holder)) /* it may have named a server, which was asked */
        heir = find_heir(holder);
    if (holder->leave != LEAVE_OFFERS)
        return;
    if (heir == HOLDER_NONE) {
        if (holder_is_holder(holder) && holder->heirs == HEIRS_NAMED)
            holder->leave = LEAVE_DONE; /* this is the user's last server */
        else if (holder->state == RESTS)
            seek_now(holder);
        return;
    }
    if (holder_is_holder(holder))
        hold_adopt(holder);
    wire_put_u8(&out, HOLDER_HEIR);
    store_put_entries(&out, holder->kept, outlives, NULL);
    holder->leave = out.failed ? LEAVE_DONE : LEAVE_AWAITS;
    holder->heir = heir;
    if (!out.failed)
        holder->env.ask(holder->env.arg, heir, out.data, out.len, ANSWER_S, taken, holder);
    wire_out_free(&out);
}

void holder_leave(struct holder *holder)
{
    if (holder->closing || !holder_is_deputy(holder) || holder->leave != LEAVE_NOT)
        return;
    if (holder_is_holder(holder))
        hold_adopt(holder);
    uint32_t next = find_next(holder);
    if (next != HOLDER_NONE && store_counts(holder->kept).entries > 0)
        seek_greet(holder, next, holder_ignore);
    holder->leave = has_to(holder) ? LEAVE_OFFERS : LEAVE_DONE;
    holder->leave_until = holder_now(holder) + HAND_MS;
    leave_offer(holder);
}

bool holder_hands_over(const struct holder *holder)
{
    return (holder->leave == LEAVE_OFFERS || holder->leave == LEAVE_AWAITS) &&
           holder_now(holder) < holder->leave_until;
}

void leave_inherit(struct holder *holder, struct carry *c)
{
    struct wire_in in;
    wire_in_init(&in, c->body, c->len);
    wire_get_u8(&in);
    if (holder->leave != LEAVE_NOT) {
        carry_answer(c, HOLDER_AGAIN, NULL, 0);
        return;
    }
    bool good = desk_take(holder->kept, &in) && wire_end(&in);
    carry_answer(c, good ? holder->env.codes.success : holder->env.codes.bad, NULL, 0);
    seek_say_kept(holder);
}
