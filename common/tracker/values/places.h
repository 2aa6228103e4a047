/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The servers of an operation in one order, which is the same on all of them: each has a place in
 * it, its slot. Kept as runs of servers with consecutive numbers, so that "all servers" is one run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PLACES_NONE = 0xffffffff };

/** Servers with consecutive numbers. */
struct places_run {
    uint32_t slot; /**< of the first one */
    uint32_t node; /**< the first one */
    uint32_t n;
};

/** All zero has no servers. */
struct places {
    uint32_t n; /**< servers */
    uint32_t nruns, cap;
    struct places_run *runs; /**< ascending by slot; owned */
    bool mixed;              /**< not ascending by server: several namespaces */
};

/** Adds servers node..node+n-1 behind the others. @return 0, or -1: out of memory, or too many */
int places_add(struct places *places, uint32_t node, uint32_t n);

/** @return the server in @p slot, which is less than places::n */
uint32_t places_node(const struct places *places, uint32_t slot);

/** @return the slot of server @p node, or PLACES_NONE */
uint32_t places_slot(const struct places *places, uint32_t node);

void places_free(struct places *places);
