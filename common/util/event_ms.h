/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libevent with times in milliseconds.
 */
#ifndef MUSTER_UTIL_EVENT_MS_H
#define MUSTER_UTIL_EVENT_MS_H

#include <event2/event.h>
#include <stdint.h>

/** As event_add(). @param ms until the event times out @thread the loop's */
static inline int event_add_ms(struct event *event, int64_t ms)
{
    const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    return event_add(event, &tv);
}

#endif
