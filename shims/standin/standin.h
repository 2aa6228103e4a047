/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun runs: a step of Slurm, or a job of Flux.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** One node of the step. */
struct standin_node {
    char name[16];
    uint16_t ntasks;
    uint32_t *ranks;  /**< by local slot; owned */
    const char *conf; /**< its muster.json, borrowed; NULL: as MUSTER_CONF says */
};

/** The step that this musterrun runs. */
struct standin_step {
    uint32_t job, step;
    int64_t start; /**< when it was started, s since the epoch */
    int64_t end;   /**< when it has to end, the same; 0: it has no limit */
    uint32_t nnodes, ntasks;
    struct standin_node *nodes; /**< owned */
    char dir[80];               /**< of this run; DIR/NODE is a node's spool directory */
    bool joined;                /**< a task of another step has spawned it, whose dir that is */
    uint32_t job_nodes; /**< nodes of the job, node0 to the last; a joined step may use less */
    uint16_t *cpus;     /**< processors of each of them; owned */
    bool limited;       /**< a step that needs more of them is refused */
    int verbose;        /**< 0: errors, 1: information, 2: debug lines */
};
