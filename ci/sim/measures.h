/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The operations that are measured, each with engines of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What one operation costs. */
struct measure {
    const char *name;
    uint32_t servers;       /**< of the step */
    uint32_t data;          /**< bytes that each server contributes */
    bool sampled;           /**< some releases were counted, but not made (sim_send()) */
    bool good;              /**< every call that could be was answered once, and as it had to be */
    uint64_t frames, bytes; /**< sums; headers of the link included */
    uint32_t frames_in;     /**< at most, to one server */
    uint64_t bytes_in;      /**< at most, to one server */
    uint64_t bytes_out;     /**< at most, out of one server: the root */
    uint64_t release;       /**< bytes of the longest release */
    uint32_t hops;          /**< frames one after another from the first to the last */
    size_t memory;          /**< bytes at most that a server held for it */
    size_t memory_mean;     /**< mean of all servers' most */
    size_t kept;            /**< bytes at most that a server holds when it is over */
    double call_us, frame_us; /**< CPU of a call, and of a frame that arrives; means */
};

typedef void measure_fn(struct measure *m);

/** An operation. */
struct measured {
    const char *name;
    uint32_t data;   /**< bytes */
    measure_fn *run; /**< m->servers and m->data are set */
    const char *about;
};

extern const struct measured measures[];
extern const uint32_t nmeasures;
