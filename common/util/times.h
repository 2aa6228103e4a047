/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long things took: a histogram in powers of two, of constant size.
 * @thread any, one at a time
 */
#pragma once

#include <stdint.h>

enum { TIMES_BUCKETS = 28 /**< the last one has all from 2^27 µs (134 s) on */ };

/** All zero is an empty one. Bucket i has times from 2^i µs to less than 2^(i+1) µs, bucket 0 also
 * those below. The sum of a bucket says more than its bounds do: see times_quantile(). */
struct times {
    uint64_t count, total_us, max_us;
    uint64_t n[TIMES_BUCKETS];
    uint64_t us[TIMES_BUCKETS]; /**< their sum, by bucket */
};

void times_add(struct times *times, uint64_t us);

/** Adds all of @p more. */
void times_merge(struct times *times, const struct times *more);

/** @param q 0 to 1 @return the mean of the bucket in which so large a part of the times ends, µs:
 * it is exact where they are alike, and less than a factor of two away where they are not; 0: there
 * are none */
uint64_t times_quantile(const struct times *times, double q);
