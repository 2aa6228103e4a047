/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A binary heap whose elements know their places.
 */
#include "common/tracker/values/timers.h"

#include <stdlib.h>

static void put(struct timers *timers, uint32_t place, struct timer *timer)
{
    timers->v[place - 1] = timer;
    timer->place = place;
}

/* Moves a timer from a place up and down until it fits. */
static void sift(struct timers *timers, uint32_t place, struct timer *timer)
{
    while (place > 1 && timers->v[place / 2 - 1]->at > timer->at) {
        put(timers, place, timers->v[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        uint32_t child = 2 * place;
        if (child < timers->n && timers->v[child]->at < timers->v[child - 1]->at)
            child++;
        if (child > timers->n || timers->v[child - 1]->at >= timer->at)
            break;
        put(timers, place, timers->v[child - 1]);
        place = child;
    }
    put(timers, place, timer);
}

int timers_start(struct timers *timers, struct timer *timer, uint64_t at, timer_fire *fire)
{
    if (timers->n == timers->cap) {
        uint32_t cap = timers->cap > 0 ? 2 * timers->cap : 16;
        struct timer **v = realloc(timers->v, cap * sizeof *v);
        if (v == NULL)
            return -1;
        timers->v = v;
        timers->cap = cap;
    }
    timer->at = at;
    timer->fire = fire;
    sift(timers, ++timers->n, timer);
    return 0;
}

void timers_set(struct timers *timers, struct timer *timer, uint64_t at)
{
    timer->at = at;
    sift(timers, timer->place, timer);
}

void timers_sooner(struct timers *timers, struct timer *timer, uint64_t at)
{
    if (at < timer->at)
        timers_set(timers, timer, at);
}

void timers_stop(struct timers *timers, struct timer *timer)
{
    uint32_t place = timer->place;
    if (place == 0)
        return;
    struct timer *last = timers->v[--timers->n];
    timer->place = 0;
    if (last != timer)
        sift(timers, place, last);
}

uint64_t timers_next(const struct timers *timers)
{
    return timers->n > 0 ? timers->v[0]->at : TIMER_NEVER;
}

void timers_fire(struct timers *timers, void *arg, uint64_t now)
{
    while (timers_next(timers) <= now)
        timers->v[0]->fire(arg, timers->v[0], now);
}

uint64_t timer_earliest(const uint64_t *times, uint32_t n)
{
    uint64_t at = TIMER_NEVER;
    for (uint32_t i = 0; i < n; i++)
        if (times[i] != 0 && times[i] < at)
            at = times[i];
    return at;
}

void timers_free(struct timers *timers)
{
    free(timers->v);
    *timers = (struct timers){0};
}
