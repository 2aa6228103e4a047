/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Points in time that waits are bounded by, on the clock that is never set (CLOCK_MONOTONIC).
 */
#ifndef MUSTER_UTIL_CLOCK_H
#define MUSTER_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Milliseconds since some start. @thread any */
static inline int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/** Milliseconds until @p deadline, a value of now_ms(), for poll(): never negative. @thread any */
static inline int deadline_left(int64_t deadline)
{
    int64_t left = deadline - now_ms();

    return left > 0 ? (int)left : 0;
}

#endif
