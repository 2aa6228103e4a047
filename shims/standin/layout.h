/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which node each rank is on.
 */
#pragma once

#include "shims/standin/standin.h"

#include <stdbool.h>

/** As many ranks on each node as on any other, the first ones taking what is left over; or planes,
 * dealt out in turn. @param plane 0: the first @param node_of by rank */
void layout_deal(const struct standin_step *step, long plane, uint32_t *node_of);

/** @return whether a rank is on the node */
bool layout_has_task(const struct standin_step *step, const uint32_t *node_of, uint32_t node);

/** Makes step->nodes. @param which the number in the name of each; NULL: 0, 1, 2
 * @return 0, or -1: out of memory */
int layout_nodes(struct standin_step *step, const uint32_t *node_of, const uint32_t *which);

/** The step's nodes are the job's. @param slots processors of each; 0: as many as it has tasks, and
 * no limit @return 0, or -1: out of memory */
int layout_cpus(struct standin_step *step, uint32_t slots);
