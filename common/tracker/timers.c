/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A binary heap whose elements know their places.
 */
#include "common/tracker/timers.h"

#include <stdlib.h>

int timers_reserve(struct timers *timers)
{
    if (timers->n < timers->cap)
        return 0;
    uint32_t cap = timers->cap > 0 ? 2 * timers->cap : 16;
    struct timer **v = realloc(timers->v, cap * sizeof *v);
    if (v == NULL)
        return -1;
    timers->v = v;
    timers->cap = cap;
    return 0;
}

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

void timers_set(struct timers *timers, struct timer *timer, uint64_t at)
{
    uint32_t place = timer->place;
    if (at != UINT64_MAX) {
        timer->at = at;
        sift(timers, place != 0 ? place : ++timers->n, timer);
    } else if (place != 0) {
        struct timer *last = timers->v[--timers->n];
        timer->place = 0;
        if (last != timer)
            sift(timers, place, last);
    }
}

struct timer *timers_first(const struct timers *timers)
{
    return timers->n > 0 ? timers->v[0] : NULL;
}

void timers_free(struct timers *timers)
{
    free(timers->v);
    *timers = (struct timers){0};
}
