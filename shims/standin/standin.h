/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What musterrun runs: a step of Slurm, or a job of Flux.
 */
#ifndef MUSTER_STANDIN_H
#define MUSTER_STANDIN_H

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
    uint32_t nnodes, ntasks;
    struct standin_node *nodes; /**< owned */
    char dir[80];               /**< of this run; DIR/NODE is a node's spool directory */
    int verbose;                /**< 0: errors, 1: information, 2: debug lines */
};

#endif
