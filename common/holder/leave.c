/* SPDX-License-Identifier: BSD-3-Clause */
/* A head that ends in order tells the next server of its step, which may go on, what is kept. And
 * it hands over what outlives the step: to the holder, or, where it is that itself, to the head of
 * another step, which keeps it as if its own step had published it.
 */
#include "common/holder/private.h"

enum { HAND_MS = 3000 }; /* for a server to be found that keeps it */

static bool outlives(const void *arg, const struct store_entry *e)
{
    return holder_keeps(arg, e) && store_outlives(e);
}

static bool has_to(const struct holder *holder)
{
    const struct store_entry *e = store_first(holder->store);
    while (e != NULL && !outlives(NULL, e))
        e = TAILQ_NEXT(e, link);
    return holder->leaves && !holder->alone && e != NULL && holder_is_head(holder);
}

/* @return HOLDER_NONE: there is none now */
static uint32_t find_heir(const struct holder *holder)
{
    const struct client *client, *found = NULL;
    if (holder->state == FOLLOWS)
        return holder->node;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (!client->refuses && !holder->env.is_lost(holder->env.arg, client->node) &&
            (found == NULL || found->state < CLIENT_KNOWN))
            found = client;
    return found != NULL ? found->node : HOLDER_NONE;
}

void leave_offer(struct holder *holder)
{
    struct wire_out out = {0};
    if (!has_to(holder) || holder->heir != HOLDER_NONE)
        return;
    if (holder_is_holder(holder) && !holder->listed && find_heir(holder) == HOLDER_NONE) {
        holder->listed = true;
        seek_others(holder); /* it may have named a server */
    }
    holder->heir = find_heir(holder);
    if (holder->heir == HOLDER_NONE) {
        if (holder_is_holder(holder) && holder->listings == 0)
            holder->alone = true; /* this is the user's last server */
        else if (holder->state == RESTS)
            seek_now(holder);
        return;
    }
    edit_put(holder, HOLDER_HEIR, outlives, &out);
    request_tell(holder, holder->heir, out.data, out.len);
    wire_out_free(&out);
}

void leave_heard(struct holder *holder, const struct request *r, bool good)
{
    struct client *client;
    holder->heir = HOLDER_NONE;
    if (good) {
        edit_undo(holder, r); /* it is that one's now */
        return;
    }
    TAILQ_FOREACH (client, &holder->clients, link)
        client->refuses |= client->node == r->to;
    if (holder->state == FOLLOWS && holder->node == r->to)
        seek_later(holder);
}

void holder_leave(struct holder *holder)
{
    struct wire_out out = {0};
    uint32_t next = holder->env.heir(holder->env.arg);
    if (holder->closing || holder->leaves)
        return;
    holder->leaves = true;
    holder->leave_until = holder_now(holder) + HAND_MS;
    if (!holder_is_head(holder))
        return; /* it may become that while it leaves */
    desk_adopt(holder);
    if (next != holder->env.self && holder_first(holder) != NULL) {
        edit_put(holder, HOLDER_KEEP, holder_keeps, &out);
        request_tell(holder, next, out.data, out.len);
        wire_out_free(&out);
    }
    leave_offer(holder);
}

bool holder_hands_over(const struct holder *holder)
{
    return has_to(holder) && holder_now(holder) < holder->leave_until;
}
