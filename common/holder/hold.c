/* SPDX-License-Identifier: BSD-3-Clause */
/* Becoming the holder, and what it does when it ceases to be that. */
#include "common/holder/private.h"

#include <string.h>

enum {
    COLLECT_MS = 4000, /* for the other steps to say what they have */
    SUCCEED_MS = 1000, /* the same where the other steps come by themselves */
};

void hold_begin(struct holder *holder)
{
    holder_set_state(holder, HOLDS);
    holder->checks = 0;
    timer_after(&holder->check, CHECK_FIRST_MS);
    holder->serve(holder);
}

static void copy(const struct holder *holder, const struct store *from, struct store *to,
                 store_which_fn *which)
{
    struct wire_out out = {0};
    struct wire_in in;
    store_put_entries(&out, from, which, holder);
    wire_in_init(&in, out.data, out.len);
    if (!out.failed)
        desk_take(to, &in);
    wire_out_free(&out);
}

void hold_kept(struct holder *holder)
{
    copy(holder, holder->kept, holder->held, NULL);
}

static void collected(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    (void)data, (void)len;
    if (status == HOLDER_AGAIN && timer_runs(&holder->check))
        timer_after(&holder->check, 0); /* it knows an older one */
    if (holder->collecting > 0 && --holder->collecting == 0 && holder->state == COLLECTS)
        hold_begin(holder);
}

static void collect_from(struct holder *holder, uint32_t node)
{
    const unsigned char op = HOLDER_COLLECT;
    holder->collecting++;
    holder->env.ask(holder->env.arg, node, &op, 1, ANSWER_S, collected, holder);
}

void hold_collect(struct holder *holder)
{
    const struct holder_env *env = &holder->env;
    hold_kept(holder);
    if (env->find == NULL) {
        hold_begin(holder);
        return;
    }
    holder_set_state(holder, COLLECTS);
    timer_after(&holder->until, COLLECT_MS);
    holder->collecting = 1; /* until the last of them is named */
    holder->listings++;
    if (env->others == NULL || !env->others(env->arg)) {
        holder->listings--;
        timer_after(&holder->until, SUCCEED_MS);
        if (!holder->succeeds)
            hold_begin(holder);
    }
}

void holder_other(struct holder *holder, uint32_t node)
{
    bool ends = node == HOLDER_NONE, collects = holder->listings > 0;
    if (ends && collects)
        holder->listings--;
    if (!holder_is_holder(holder))
        return;
    if (ends && collects)
        collected(holder, 0, NULL, 0);
    else if (ends && holder->heirs == HEIRS_ASKED)
        holder->heirs = HEIRS_NAMED;
    else if (!ends && collects && holder->state == COLLECTS)
        collect_from(holder, node);
    if (!ends && holder->leave != LEAVE_NOT)
        desk_note(holder, node); /* perhaps an heir */
    if (holder->leave == LEAVE_OFFERS)
        holder->serve(holder);
}

static bool is_of_gone_step(const void *arg, const struct store_entry *e)
{
    const struct holder *holder = arg;
    const struct client *client;
    TAILQ_FOREACH (client, &holder->clients, link)
        if (!client->gone && strcmp(client->nspace, e->who.nspace) == 0)
            return false;
    return store_outlives(e);
}

/* Other steps tell the next holder what they have told us. Entries of steps that are gone only we
 * know: we keep them, to tell them ourselves. */
void hold_adopt(struct holder *holder)
{
    copy(holder, holder->held, holder->kept, is_of_gone_step);
}
