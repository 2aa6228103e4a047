/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for the holder, follows it, or becomes it.
 *
 * Two holders may come about when servers see different steps: one that has only just begun, a list
 * of the resource manager's that is late, a node that was cut off. One that becomes the holder asks
 * all other steps for what they have, so the two hear of each other, or a step that both take for
 * theirs tells them. Then each asks the resource manager anew, and the one that it does not name
 * steps down.
 */
#include "common/holder/private.h"

#include "common/util/log.h"

enum {
    PAUSE_MAX_MS = 2000,
    COLLECT_MS = 4000, /* for the other steps to say what they have */
    SUCCEED_MS = 1000, /* the same where the other steps come by themselves */
};

void seek_now(struct holder *holder)
{
    if (holder->closing || !holder_is_head(holder) || holder->asked)
        return;
    if (holder->state == RESTS)
        holder_set_state(holder, SEEKS);
    if (holder->state == SEEKS && holder->since == 0)
        holder->since = holder_now(holder);
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
    holder_set_state(holder, SEEKS);
    if (holder->since == 0)
        holder->since = holder_now(holder);
    holder->pause = holder->pause == 0                 ? PAUSE_FIRST_MS
                    : holder->pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                       : holder->pause * 2;
    timer_after(&holder->again, holder->pause);
    holder_turn(holder);
}

void seek_ends(struct holder *holder)
{
    holder->pause = 0;
    holder->since = 0;
}

bool seek_is_vain(const struct holder *holder)
{
    return holder->state == SEEKS && holder->since != 0 &&
           holder_now(holder) - holder->since >= VAIN_MS;
}

void seek_others(struct holder *holder)
{
    if (holder->env.others == NULL)
        return;
    holder->listings++;
    holder->env.others(holder->env.arg);
}

/* ---- being the holder ---- */

static void hold(struct holder *holder)
{
    holder_set_state(holder, HOLDS);
    seek_ends(holder);
    holder->looks = 0;
    holder->next_look = 1;
    timer_stop(&holder->until);
    timer_after(&holder->look, LOOK_MS);
    holder_turn(holder);
}

void seek_hold(struct holder *holder)
{
    bool late = !timer_runs(&holder->until);
    bool all = holder->env.others != NULL && holder->listings == 0 && !desk_awaits(holder);
    if (holder->state == COLLECTS && (late || all))
        hold(holder);
}

/* Asks the other steps for what they have, and then holds. */
static void collect(struct holder *holder)
{
    const struct holder_env *env = &holder->env;
    holder_set_state(holder, COLLECTS);
    if (env->find != NULL && (env->others != NULL || holder->succeeds))
        timer_after(&holder->until, env->others != NULL ? COLLECT_MS : SUCCEED_MS);
    seek_others(holder);
    seek_hold(holder);
    holder_turn(holder);
}

/* Another one is the holder. */
static void step_down(struct holder *holder)
{
    struct request *r;
    desk_adopt(holder);
    timer_stop(&holder->until);
    timer_stop(&holder->look);
    TAILQ_FOREACH (r, &holder->requests, link)
        if (r->state == WAITS)
            r->state = QUEUED; /* those of other steps are sent away */
    desk_close(holder);
}

/* ---- following it ---- */

void seek_follow(struct holder *holder, uint32_t node)
{
    holder->node = node;
    holder->succeeds = true;
    holder_set_state(holder, FOLLOWS);
    timer_stop(&holder->again);
    timer_after(&holder->look, QUIET_MS);
    holder_turn(holder);
}

void holder_found(struct holder *holder, uint32_t node, const char *why)
{
    holder->asked = false;
    if (holder->closing || !holder_is_head(holder))
        return;
    bool holds = holder_is_holder(holder);
    holder_turn(holder);
    if (node == HOLDER_NONE)
        log_info("the session's holder is not known: %s", why != NULL ? why : "?");
    if (node == holder->env.self) {
        if (!holds)
            collect(holder);
    } else if (node == HOLDER_NONE || holder->env.is_lost(holder->env.arg, node)) {
        if (!holds && holder->state != FOLLOWS)
            seek_later(holder);
    } else if (holder->state != FOLLOWS || holder->node != node) {
        if (holds)
            step_down(holder);
        seek_follow(holder, node);
        request_tell_op(holder, node, HOLDER_JOIN);
    }
}
