/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for the holder, and follows it.
 *
 * Two holders may come about when servers see different steps: one that has only just begun, a list
 * of the resource manager's that is late, a node that was cut off. So a holder looks again after
 * seconds, and then every few minutes, whether there is an older one; then it follows that holder,
 * and the steps that it served are told to look again.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

#include <stdlib.h>

enum { PAUSE_MAX_MS = 2000 };

static void seek(struct holder *holder)
{
    holder_set_state(holder, SEEKS);
    if (!timer_runs(&holder->vain))
        timer_after(&holder->vain, VAIN_MS);
}

void seek_now(struct holder *holder)
{
    if (holder->closing || !holder_is_deputy(holder) || holder->asked)
        return;
    if (!holder_is_holder(holder))
        seek(holder);
    timer_stop(&holder->again);
    if (holder->env.find == NULL) {
        holder_found(holder, holder->env.self, NULL);
        return;
    }
    holder->asked = true;
    holder->env.find(holder->env.arg);
}

void seek_later(struct holder *holder)
{
    seek(holder);
    holder->pause = holder->pause == 0                 ? PAUSE_FIRST_MS
                    : holder->pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                       : holder->pause * 2;
    timer_after(&holder->again, holder->pause);
}

void seek_again(struct holder *holder, int32_t status)
{
    if (status == holder->env.codes.lost)
        holder->node = HOLDER_NONE; /* its goodbye would end the pause, as often as it is named */
    seek_later(holder);
}

static void greeted(void *arg, int32_t status, const void *data, size_t len);

/* Whether what is kept here is all that the step has published: its first server has heard of all
 * of that, but for what @p node alone knows yet. */
static bool is_whole(const struct holder *holder, uint32_t node)
{
    const struct carry *c;
    TAILQ_FOREACH (c, &holder->carries, link)
        if (c->op == HOLDER_PUBLISH && c->state == CARRY_SENT && c->to == node)
            return false;
    return holder->env.self == 0;
}

/* What a holder that is gone may have had, and shown to others, before it could answer: it is told
 * to the next one ahead of the request, which comes again. @return how many entries */
static uint32_t put_unanswered(const struct holder *holder, struct wire_out *out)
{
    const struct carry *c;
    uint32_t n = 0;
    TAILQ_FOREACH (c, &holder->carries, link) {
        struct wire_in in;
        if (c->op != HOLDER_PUBLISH || !c->went || c->answered || !holder_is_own(holder, c->from))
            continue;
        wire_in_init(&in, c->body, c->len);
        wire_get_u8(&in);
        for (uint32_t left = wire_get_u32(&in); left > 0 && !in.bad; left--) {
            struct store_entry *e = store_get_entry(&in);
            if (e != NULL) {
                store_put_entry(out, e);
                n++;
            }
            store_entry_free(e);
        }
    }
    return n;
}

bool seek_greet(struct holder *holder, uint32_t node, ask_done_fn *done)
{
    const struct store_entry *e;
    struct wire_out out = {0}, more = {0};
    uint32_t n = put_unanswered(holder, &more);
    wire_put_u8(&out, HOLDER_HELLO);
    wire_put_u64(&out, ++holder->hellos);
    wire_put_u8(&out, is_whole(holder, node));
    wire_put_u32(&out, store_counts(holder->kept).entries + n);
    for (e = store_first(holder->kept); e != NULL; e = TAILQ_NEXT(e, link))
        store_put_entry(&out, e);
    wire_put_raw(&out, more.data, more.len);
    bool good = !out.failed && !more.failed;
    wire_out_free(&more);
    if (good)
        holder->env.ask(holder->env.arg, node, out.data, out.len, ANSWER_S, done, holder);
    wire_out_free(&out);
    return good;
}

void seek_follow(struct holder *holder, uint32_t node)
{
    holder->node = node;
    holder_set_state(holder, GREETS);
    holder->more = false;
    holder->greeting = holder->hellos + 1;
    if (!seek_greet(holder, node, greeted))
        seek_later(holder);
}

/* There is an older holder. */
static void step_down(struct holder *holder, uint32_t node)
{
    const unsigned char op = HOLDER_COLLECT;
    struct carry *c, *next;
    hold_adopt(holder);
    while (store_first(holder->held) != NULL)
        store_remove(holder->held, store_first(holder->held));
    holder->state = SEEKS;
    for (c = TAILQ_FIRST(&holder->carries); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->state != CARRY_WAITS || c->lookup.keys == NULL)
            continue;
        store_free_lookup(&c->lookup);
        c->state = CARRY_QUEUED;
        if (!holder_is_own(holder, c->from))
            carry_answer(c, HOLDER_AGAIN, NULL, 0);
    }
    while (!TAILQ_EMPTY(&holder->clients)) {
        struct client *client = TAILQ_FIRST(&holder->clients);
        if (!client->gone) /* it looks again */
            holder->env.ask(holder->env.arg, client->node, &op, 1, ANSWER_S, holder_ignore, NULL);
        desk_free(holder, client);
    }
    seek_follow(holder, node);
}

/* Servers that took us for the holder are to look again. */
static void send_away(struct holder *holder)
{
    struct carry *c, *next;
    for (c = TAILQ_FIRST(&holder->carries); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        if (!holder_is_own(holder, c->from) && c->state == CARRY_QUEUED)
            carry_answer(c, HOLDER_AGAIN, NULL, 0);
    }
}

static void greeted(void *arg, int32_t status, const void *data, size_t len)
{
    struct holder *holder = arg;
    struct wire_in in;
    wire_in_init(&in, data, len);
    if (holder->closing || holder->state != GREETS)
        return;
    if (status != holder->env.codes.success) {
        seek_again(holder, status);
        return;
    }
    if (wire_get_u64(&in) != holder->greeting)
        return; /* of another one, whom we greeted before */
    holder_set_state(holder, FOLLOWS);
    holder->succeeds = true;
    holder->pause = 0;
    timer_stop(&holder->vain);
    timer_after(&holder->ping, PING_MS);
    if (holder->more)
        seek_greet(holder, holder->node, holder_ignore);
    send_away(holder);
    holder->serve(holder);
}

void holder_found(struct holder *holder, uint32_t node, const char *why)
{
    bool holding = holder_is_holder(holder);
    holder->asked = false;
    if (holder->closing || !holder_is_deputy(holder))
        return;
    if (holder->state == HOLDS && !timer_runs(&holder->check))
        timer_after(&holder->check, 0); /* it was due meanwhile */
    if (node == HOLDER_NONE) {
        log_info("the session's holder is not known: %s", why != NULL ? why : "?");
        if (!holding)
            seek_later(holder);
        return;
    }
    if (node == holder->env.self) {
        timer_stop(&holder->vain);
        holder->pause = 0;
        if (!holding)
            hold_collect(holder);
    } else if (holder->env.is_lost(holder->env.arg, node)) {
        if (!holding)
            seek_later(holder);
    } else if (holding) {
        step_down(holder, node);
    } else {
        seek_follow(holder, node);
    }
}

void seek_say_kept(struct holder *holder)
{
    if (holder_is_holder(holder)) {
        hold_kept(holder);
        desk_retry(holder);
    } else if (holder_above(holder) != HOLDER_NONE) {
        seek_greet(holder, holder_above(holder), holder_ignore);
    } else if (holder->state == RESTS && holder_is_needed(holder)) {
        seek_now(holder);
    }
    holder->more = true;
}
