/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node each rank is on. */
#include "shims/standin/layout.h"

#include <stdio.h>
#include <stdlib.h>

void layout_deal(const struct standin_step *step, long plane, uint32_t *node_of)
{
    uint32_t each = step->ntasks / step->nnodes, more = step->ntasks % step->nnodes;
    for (uint32_t rank = 0; rank < step->ntasks; rank++) {
        if (plane > 0)
            node_of[rank] = rank / (uint32_t)plane % step->nnodes;
        else if (rank < more * (each + 1))
            node_of[rank] = rank / (each + 1);
        else
            node_of[rank] = more + (rank - more * (each + 1)) / each;
    }
}

bool layout_has_task(const struct standin_step *step, const uint32_t *node_of, uint32_t node)
{
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        if (node_of[rank] == node)
            return true;
    return false;
}

int layout_nodes(struct standin_step *step, const uint32_t *node_of, const uint32_t *which)
{
    step->nodes = calloc(step->nnodes, sizeof(*step->nodes));
    if (!step->nodes)
        return -1;
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        step->nodes[node_of[rank]].ntasks++;
    for (uint32_t n = 0; n < step->nnodes; n++) {
        struct standin_node *node = &step->nodes[n];
        uint32_t slot = 0;
        snprintf(node->name, sizeof(node->name), "node%u", which ? which[n] : n);
        node->ranks = calloc(node->ntasks, sizeof(*node->ranks));
        if (!node->ranks)
            return -1;
        for (uint32_t rank = 0; rank < step->ntasks; rank++)
            if (node_of[rank] == n)
                node->ranks[slot++] = rank;
    }
    return 0;
}

int layout_cpus(struct standin_step *step, uint32_t slots)
{
    step->job_nodes = step->nnodes;
    step->limited = slots > 0;
    step->cpus = calloc(step->nnodes, sizeof *step->cpus);
    if (step->cpus == NULL)
        return -1;
    for (uint32_t n = 0; n < step->nnodes; n++)
        step->cpus[n] = slots > step->nodes[n].ntasks ? (uint16_t)slots : step->nodes[n].ntasks;
    return 0;
}
