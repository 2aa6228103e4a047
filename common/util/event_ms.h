/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libevent with times in milliseconds.
 */
#ifndef MUSTER_UTIL_EVENT_MS_H
#define MUSTER_UTIL_EVENT_MS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/** As event_add(). @param ms until the event times out @thread the loop's */
static inline int event_add_ms(struct event *event, int64_t ms)
{
    const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    return event_add(event, &tv);
}

/** Runs the loop until something has happened. @param timer of the loop, set anew: its event ends
 * that, too
 * @param ms until it does; -1: never @return whether the loop can go on @thread the loop's */
static inline bool loop_turn(struct event_base *base, struct event *timer, int64_t ms)
{
    if (ms >= 0)
        event_add_ms(timer, ms);
    else
        event_del(timer);
    return event_base_loop(base, EVLOOP_ONCE) == 0;
}

#endif
