/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the holder's end ask about its state. */
#include "common/holder/private.h"

#include "common/util/log.h"

static const char *const state_names[] = {"rests",   "seeks",    "greets",
                                          "follows", "collects", "holds"};

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

bool holder_is_deputy(const struct holder *holder)
{
    return holder->deputy == holder->env.self;
}

bool holder_is_holder(const struct holder *holder)
{
    return holder->state == HOLDS || holder->state == COLLECTS;
}

uint32_t holder_find_deputy(const struct holder *holder)
{
    for (uint32_t node = 0; node < holder->env.self; node++)
        if (!holder->env.is_lost(holder->env.arg, node))
            return node;
    return holder->env.self;
}

uint32_t holder_above(const struct holder *holder)
{
    if (!holder_is_deputy(holder))
        return holder->deputy;
    return holder->state == FOLLOWS ? holder->node : HOLDER_NONE;
}

bool holder_is_needed(const struct holder *holder)
{
    const struct carry *c;
    if (store_counts(holder->kept).entries > 0)
        return true;
    TAILQ_FOREACH (c, &holder->carries, link)
        if (!c->answered)
            return true;
    return false;
}

void holder_ignore(void *arg, int32_t status, const void *data, size_t len)
{
    (void)arg, (void)status, (void)data, (void)len;
}
