/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The end of a thread, waited for by the clock that nobody sets. pthread_clockjoin_np() does that,
 * too, but ThreadSanitizer does not know it, and takes what comes after it for a race.
 */
#ifndef MUSTER_UTIL_JOIN_H
#define MUSTER_UTIL_JOIN_H

#include "common/util/clock.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

enum { JOIN_NAP_MS = 10 /* between looks, at most */ };

/** Joins @p thread if it ends until @p deadline, a value of now_ms(). @return whether it did
 * @thread any */
static inline bool join_until(pthread_t thread, int64_t deadline)
{
    for (int ms = 1; pthread_tryjoin_np(thread, NULL) != 0;
         ms = 2 * ms < JOIN_NAP_MS ? 2 * ms : JOIN_NAP_MS) {
        if (deadline_left(deadline) == 0)
            return false;
        poll(NULL, 0, ms);
    }
    return true;
}

#endif
