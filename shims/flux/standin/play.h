/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The part of musterrun that plays Flux: flux run, and for each node a broker and a job shell.
 *
 *     musterrun ── play.c
 *        ├─ node0's broker ── broker.c, overlay.c: muster.so, and the services of rank 0
 *        │    └─ shell ── shell.c, shell_api.c: muster-shell.so ──► muster-server: rm_flux.so
 *        │         └─ tasks
 *        └─ node1's broker …
 *
 * Brokers form a tree, each with two below it, of sockets made before they are forked; shell and
 * server connect to their node's broker. A broker whose parent is gone ends, and its node with it:
 * with a node that is not a leaf all nodes below it are lost, as with Flux.
 */
#pragma once

#include "shims/standin/node.h"

/** Its state in struct run. */
struct flux_run {
    int (*tree)[2]; /**< by rank, from 1: sockets of the parent and of the broker itself */
    int (*life)[2]; /**< by rank: pipe that a broker lives as long as we hold it */
    int done[2];    /**< pipe that all brokers hold */
    int events;     /**< for struct run_event */
};

/** The parent of a broker's rank, which is not 0. */
static inline uint32_t tree_parent(uint32_t rank)
{
    return (rank - 1) / 2;
}

/** Whether @p rank is @p top or below it. */
static inline bool tree_below(uint32_t rank, uint32_t top)
{
    while (rank > top)
        rank = tree_parent(rank);
    return rank == top;
}

/** A node's process: a broker, and its child, the job shell; standin_rm.node. */
void broker_run(struct run *run, uint32_t rank, int control);

/** The job shell, in a process of its own. @param uri of the node's broker */
_Noreturn void shell_run(struct run *run, uint32_t rank, int control, const char *uri);
