/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Times at which something is due, in a heap: the next one is found at once, however many there
 * are. A timer is part of what it is for, and is in the heap as long as that is there.
 */
#ifndef MUSTER_TRACKER_TIMERS_H
#define MUSTER_TRACKER_TIMERS_H

#include <stddef.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer;

/** Called when a timer is due. It sets a later time, or stops the timer; else it is called again.
 * @param arg what timers_fire() was given */
typedef void timer_fire(void *arg, struct timer *timer, uint64_t now);

/** All zero is not in the heap. */
struct timer {
    uint64_t at;    /**< ms */
    uint32_t place; /**< in the heap, from 1; 0: it is not there */
    timer_fire *fire;
};

/** All zero is empty. */
struct timers {
    uint32_t n, cap;
    struct timer **v; /**< a heap by at; owned */
};

/** The struct of which @p timer is that member. */
#define TIMER_OF(timer, type, member) ((type *)((char *)(timer)-offsetof(type, member)))

/** Puts a timer in. @param at ms, or TIMER_NEVER @return 0, or -1: out of memory */
int timers_start(struct timers *timers, struct timer *timer, uint64_t at, timer_fire *fire);

/** Sets the time of a timer that is in the heap. */
void timers_set(struct timers *timers, struct timer *timer, uint64_t at);

/** Sets an earlier time; a later one is found when the timer is due. */
void timers_sooner(struct timers *timers, struct timer *timer, uint64_t at);

/** Takes a timer out. */
void timers_stop(struct timers *timers, struct timer *timer);

/** @return when the next one is due, ms, or TIMER_NEVER */
uint64_t timers_next(const struct timers *timers);

/** Calls every timer that is due, until none is. Timers may come and go meanwhile. */
void timers_fire(struct timers *timers, void *arg, uint64_t now);

/** @return the earliest of @p n times; 0 is none. TIMER_NEVER: there is none */
uint64_t timer_earliest(const uint64_t *times, uint32_t n);

void timers_free(struct timers *timers);

#endif
