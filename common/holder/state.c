/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the holder's end ask about its state. */
#include "common/holder/private.h"

#include "common/util/log.h"

static const char *const state_names[] = {"rests", "seeks", "follows", "collects", "holds"};

const char *holder_state_name(const struct holder *holder)
{
    return state_names[holder->state];
}

void holder_set_state(struct holder *holder, enum holder_state state)
{
    if (holder->state != state)
        log_debug("holder: %s, then %s", state_names[holder->state], state_names[state]);
    holder->state = state;
}

int64_t holder_now(const struct holder *holder)
{
    return timers_now(holder->env.timers);
}

bool holder_is_own(const struct holder *holder, uint32_t node)
{
    return node < holder->env.nnodes;
}

bool holder_is_head(const struct holder *holder)
{
    return holder->env.head(holder->env.arg) == holder->env.self;
}

bool holder_is_holder(const struct holder *holder)
{
    return holder->state == HOLDS || holder->state == COLLECTS;
}

const struct store_entry *holder_first(const struct holder *holder)
{
    const struct store_entry *e = store_first(holder->store);
    while (e != NULL && e->keeper != NULL)
        e = TAILQ_NEXT(e, link);
    return e;
}

bool holder_is_needed(const struct holder *holder)
{
    const struct request *r;
    if (holder_first(holder) != NULL)
        return true;
    TAILQ_FOREACH (r, &holder->requests, link)
        if (!r->answered && !r->word)
            return true;
    return false;
}

void holder_turn(struct holder *holder)
{
    if (!holder->closing)
        timer_after(&holder->turn, 0);
}
