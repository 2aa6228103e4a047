/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A clock, and what is due by it. All that a server does at a later time is a timer here, and
 * muster-server waits for the first of them with one event of libevent (server_turn()).
 *
 * libevent has such a heap, too. But its clock is the machine's: tests, the campaign and the
 * simulator play the clock, and have thousands of servers in one process. So the heap is ours, and
 * nothing but a struct timers has to be handed to those who wait.
 *
 * A timer is part of what it is for. The heap is a pairing heap, whose links are in the timers: to
 * start one takes no memory, and so cannot fail.
 * @thread that of the struct timers, all of it
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer;

/** Called once when a timer is due; it does not run any more, and may be started again. */
typedef void timer_fire(void *arg, struct timer *timer);

/** All zero is empty, and has the machine's clock. */
struct timers {
    struct timer *first;
    int64_t (*now)(void *arg); /**< ms of a clock that only moves forwards; NULL: now_ms() */
    void *arg;
    bool still;          /**< the clock of deadlines stands still */
    int64_t still_since; /**< then: since when, by the other clock */
    int64_t still_ms;    /**< for how long it did before */
};

/** Stays put while it runs. All zero does not run. */
struct timer {
    int64_t at; /**< ms; 0: it does not run */
    timer_fire *fire;
    void *arg;
    struct timers *timers;
    struct timer *below, *next; /**< the first one that is due no earlier; its next neighbour */
    struct timer **link;        /**< what points to this one */
};

/** The struct of which @p timer is that member. */
#define TIMER_OF(timer, type, member) ((type *)((char *)(timer)-offsetof(type, member)))

/** @return ms of the clock */
int64_t timers_now(const struct timers *timers);

/** @return the same clock in µs, as exact as it is */
int64_t timers_now_us(const struct timers *timers);

/** @return ms of the clock of deadlines. It is the other one, but for the time for which it stands
 * still: processes that are stopped are not late. */
int64_t timers_clock(const struct timers *timers);

/** Has the clock of deadlines stand still, or go on. @return whether it did not before */
bool timers_stand(struct timers *timers, bool still);

/** @return when a deadline by that clock is due, for timer_at(). While the clock stands still:
 * a second from now, when it is to be asked again. @param deadline 0: never */
int64_t timers_due(const struct timers *timers, int64_t deadline);

/** Says what a timer is for. One that runs is stopped. */
void timer_init(struct timer *timer, struct timers *timers, timer_fire *fire, void *arg);

/** Starts a timer, whether it runs or not. @param at ms of the clock; 0: never, it is stopped */
void timer_at(struct timer *timer, int64_t at);

/** The same, @p ms from now. */
void timer_after(struct timer *timer, int64_t ms);

/** The same, unless it is due before. @param at 0: nothing is done */
void timer_sooner(struct timer *timer, int64_t at);

void timer_stop(struct timer *timer);

/** Calls it now, if it runs. */
void timer_hurry(struct timer *timer);

static inline bool timer_runs(const struct timer *timer)
{
    return timer->at != 0;
}

/** @return ms until the first one is due; -1: none runs */
int64_t timers_wait(const struct timers *timers);

/** Calls the first one if it is due. @return whether it was */
bool timers_run_one(struct timers *timers);

/** Calls every timer that is due, until none is. Timers may come and go meanwhile. */
void timers_run(struct timers *timers);

/** @return the earliest of @p n times; 0 is none */
uint64_t timer_earliest(const uint64_t *times, uint32_t n);
