/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The nodes that a job has now, and those that its steps use, from slurmctld.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job_node {
    char *name;
    uint32_t cpus; /**< processors that the job has there */
    bool in_use;   /**< job_nodes_use() */
};

struct job_nodes {
    struct job_node *nodes; /**< in slurmctld's order */
    uint32_t n;
};

/** Takes a round trip to slurmctld. @return 0, or -1 with errno set; @p nodes is empty then
 * @thread any */
int job_nodes_read(uint32_t job, struct job_nodes *nodes);

/** Marks the nodes that a step of the job, or its batch script, runs on; takes a round trip.
 * @return 0, or -1 with errno set @thread any */
int job_nodes_use(uint32_t job, struct job_nodes *nodes);

/** After job_nodes_use(): the first nodes that no step uses and that have so many processors.
 * @return their names, separated by commas, malloc()ed, and in @p n how many; NULL: there are not
 * enough, or no memory */
char *job_nodes_idle(const struct job_nodes *nodes, uint32_t cpus, uint32_t *n);

/** @return the node of that name, or NULL */
struct job_node *job_nodes_find(const struct job_nodes *nodes, const char *name);

void job_nodes_free(struct job_nodes *nodes);
