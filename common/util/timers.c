/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A pairing heap: each timer has a list of those below it, which are due no earlier.
 */
#include "common/util/timers.h"

#include "common/util/clock.h"

enum { LOOK_AGAIN_MS = 1000 };

/* Two heaps become one. @return its top, which has no neighbour */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (b->at < a->at) {
        struct timer *later = a;
        a = b;
        b = later;
    }
    b->next = a->below;
    if (b->next != NULL)
        b->next->link = &b->next;
    b->link = &a->below;
    a->below = b;
    return a;
}

static struct timer *cut(struct timer **list)
{
    struct timer *first = *list;
    if (first != NULL) {
        *list = first->next;
        first->next = NULL;
    }
    return first;
}

/* Neighbours become one heap: by twos, and these one after another, which keeps it shallow. */
static struct timer *meld_all(struct timer *list)
{
    struct timer *pairs = NULL, *top = NULL;
    while (list != NULL) {
        struct timer *a = cut(&list), *pair = meld(a, cut(&list));
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL)
        top = meld(top, cut(&pairs));
    return top;
}

static void set_first(struct timers *timers, struct timer *first)
{
    timers->first = first;
    if (first != NULL)
        first->link = &timers->first;
}

int64_t timers_now(const struct timers *timers)
{
    return timers->now != NULL ? timers->now(timers->arg) : now_ms();
}

int64_t timers_now_us(const struct timers *timers)
{
    struct timespec t;
    if (timers->now != NULL)
        return timers->now(timers->arg) * 1000;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t timers_clock(const struct timers *timers)
{
    return (timers->still ? timers->still_since : timers_now(timers)) - timers->still_ms;
}

bool timers_stand(struct timers *timers, bool still)
{
    int64_t now = timers_now(timers);
    if (timers->still == still)
        return false;
    if (!still)
        timers->still_ms += now - timers->still_since;
    timers->still = still;
    timers->still_since = now;
    return true;
}

int64_t timers_due(const struct timers *timers, int64_t deadline)
{
    if (deadline == 0)
        return 0;
    return timers->still ? timers_now(timers) + LOOK_AGAIN_MS : deadline + timers->still_ms;
}

void timer_stop(struct timer *timer)
{
    if (timer->at == 0)
        return;
    struct timers *timers = timer->timers;
    *timer->link = timer->next;
    if (timer->next != NULL)
        timer->next->link = timer->link;
    set_first(timers, meld(timers->first, meld_all(timer->below)));
    timer->at = 0;
    timer->below = timer->next = NULL;
}

void timer_init(struct timer *timer, struct timers *timers, timer_fire *fire, void *arg)
{
    timer_stop(timer);
    *timer = (struct timer){.timers = timers, .fire = fire, .arg = arg};
}

void timer_at(struct timer *timer, int64_t at)
{
    timer_stop(timer);
    timer->at = at;
    if (at != 0)
        set_first(timer->timers, meld(timer->timers->first, timer));
}

void timer_after(struct timer *timer, int64_t ms)
{
    timer_at(timer, timers_now(timer->timers) + ms);
}

void timer_sooner(struct timer *timer, int64_t at)
{
    if (timer->at == 0 || (at != 0 && at < timer->at))
        timer_at(timer, at);
}

int64_t timers_wait(const struct timers *timers)
{
    return timers->first == NULL ? -1 : ms_until(timers->first->at, timers_now(timers));
}

void timer_hurry(struct timer *timer)
{
    if (!timer_runs(timer))
        return;
    timer_stop(timer);
    timer->fire(timer->arg, timer);
}

bool timers_run_one(struct timers *timers)
{
    if (timers_wait(timers) != 0)
        return false;
    timer_hurry(timers->first);
    return true;
}

void timers_run(struct timers *timers)
{
    while (timers_run_one(timers))
        ;
}

uint64_t timer_earliest(const uint64_t *times, uint32_t n)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        if (times[i] != 0 && (at == 0 || times[i] < at))
            at = times[i];
    return at;
}
