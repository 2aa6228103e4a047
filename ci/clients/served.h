/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the processes that serve a step on this node have taken: muster-server, and the slurmstepd
 * or daemon that has started the caller, in which other hosts' servers are. For ci/bench: in a pid
 * namespace that has one step, as root.
 */
#pragma once

#include <stdint.h>

struct served {
    uint64_t cpu_ns; /**< of a processor, by threads that live */
    uint64_t wakes;  /**< how often these have slept (voluntary switches) */
    uint64_t own_kb; /**< memory: their share of it (PSS) */
};

struct served served_now(void);
