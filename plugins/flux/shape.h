/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How the processes of a spawned job are spread over nodes. @thread any
 */
#pragma once

#include "common/transport/rm_spawn.h"
#include "common/util/err.h"

#include <stdbool.h>

/** How many nodes, and how many tasks on each; nodes 0: as Flux does it. */
struct shape {
    uint32_t nodes, per_node;
    bool cyclic;
};

/** @param nnodes of the job that spawns @return 0, or -1 with the reason in @p err */
int shape_find(const struct rm_spawn *what, uint32_t nnodes, struct shape *shape, struct err *err);

/** A host in the list that was asked for: no NUL is behind it. */
struct host {
    const char *name;
    size_t len;
};

/** Takes the next name off a list. @return whether there is one */
bool shape_next_host(const char **list, struct host *host);

bool shape_is_host(const struct host *a, const struct host *b);
