/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Points in time that waits are bounded by, on the clock that is never set (CLOCK_MONOTONIC).
 * @thread any
 */
#pragma once

#include <stdint.h>
#include <time.h>

/** Milliseconds since some start. */
static inline int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/** Milliseconds until @p deadline, a value of now_ms(), for poll(): never negative. */
static inline int deadline_left(int64_t deadline)
{
    int64_t left = deadline - now_ms();
    return left > 0 ? (int)left : 0;
}

/** @return the earlier one of two points in time, of which 0 is never. */
static inline int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/** @return the shorter one of two waits, of which -1 is for ever. */
static inline int64_t shorter(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/** @return milliseconds from @p now until a point in time: 0 if that is over, -1 if it is 0, which
 * is never. */
static inline int64_t ms_until(int64_t at, int64_t now)
{
    return at == 0 ? -1 : at <= now ? 0 : at - now;
}
