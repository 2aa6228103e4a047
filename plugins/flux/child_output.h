/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a spawned job prints, written to the output of the job that has spawned it.
 * @thread the shell's
 */
#pragma once

#include "shims/flux/shell_abi.h"

/** How it is written. */
struct child_output {
    flux_t *h;
    uint64_t job;      /**< the spawned one */
    const char *label; /**< its id, for messages; borrowed */
    uint32_t rank;     /**< of the process whose output it counts as */
    bool merge, tag;   /**< standard error goes to standard output; lines begin with the rank */
    void (*ended)(void *arg); /**< called once: all is written */
    void *arg;
    flux_future_t *events; /**< NULL: no more will come */
    unsigned commits;      /**< under way */
};

/** @return 0, or -1: there is no output */
int child_output_open(struct child_output *o);
void child_output_close(struct child_output *o);
