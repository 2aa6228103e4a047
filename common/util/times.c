/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram of times. */
#include "common/util/times.h"

void times_add(struct times *times, uint64_t us)
{
    unsigned i = 0;
    while (i + 1 < TIMES_BUCKETS && us >> (i + 1) != 0)
        i++;
    times->count++;
    times->total_us += us;
    times->n[i]++;
    times->us[i] += us;
    if (us > times->max_us)
        times->max_us = us;
}

void times_merge(struct times *times, const struct times *more)
{
    times->count += more->count;
    times->total_us += more->total_us;
    if (more->max_us > times->max_us)
        times->max_us = more->max_us;
    for (unsigned i = 0; i < TIMES_BUCKETS; i++) {
        times->n[i] += more->n[i];
        times->us[i] += more->us[i];
    }
}

uint64_t times_quantile(const struct times *times, double q)
{
    uint64_t so_far = 0;
    for (unsigned i = 0; i < TIMES_BUCKETS; i++) {
        so_far += times->n[i];
        if (times->n[i] > 0 && (double)so_far >= q * (double)times->count)
            return times->us[i] / times->n[i];
    }
    return times->max_us;
}
