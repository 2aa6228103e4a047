/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Times at which something is due, in a heap: the next one is found at once, however many there
 * are. A timer is part of what it is for.
 */
#ifndef MUSTER_TRACKER_TIMERS_H
#define MUSTER_TRACKER_TIMERS_H

#include <stdint.h>

/** All zero is not in the heap. */
struct timer {
    uint64_t at;    /**< ms */
    uint32_t place; /**< in the heap, from 1; 0: it is not there */
};

/** All zero is empty. */
struct timers {
    uint32_t n, cap;
    struct timer **v; /**< a heap by at; owned */
};

/** Makes room for one timer more, so that timers_set() needs no memory. @return 0, or -1 */
int timers_reserve(struct timers *timers);

/** Puts a timer in, or moves it; UINT64_MAX takes it out. Room was reserved for it. */
void timers_set(struct timers *timers, struct timer *timer, uint64_t at);

/** @return the one that is due first, or NULL */
struct timer *timers_first(const struct timers *timers);

void timers_free(struct timers *timers);

#endif
