/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a job. slurmctld tells names and processors apart: a list of names, and groups of
 * nodes in a row that have as many processors. */
#include "plugins/slurm/job_nodes.h"

#include "common/util/text.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Slurm's step over all nodes of a job, which only keeps them warm. */
enum { STEP_EXTERN = 0xfffffffc };

/* Processors on the node that follows. */
static uint32_t next_cpus(const struct slurm_abi_allocation *alloc, uint32_t *group, uint32_t *rep)
{
    while (*group < alloc->num_cpu_groups && *rep >= alloc->cpu_count_reps[*group]) {
        ++*group;
        *rep = 0;
    }
    if (*group >= alloc->num_cpu_groups)
        return 0;
    ++*rep;
    return alloc->cpus_per_node[*group];
}

/* Takes the names out of hosts. */
static int fill(struct job_nodes *to, const struct slurm_abi_allocation *alloc, void *hosts)
{
    uint32_t group = 0, rep = 0;
    char *name;
    while ((name = slurm_abi_hostlist_shift(hosts)) != NULL) {
        struct job_node *more = realloc(to->nodes, (to->n + 1) * sizeof *more);
        if (more == NULL) {
            free(name);
            return ENOMEM;
        }
        to->nodes = more;
        to->nodes[to->n++] =
            (struct job_node){.name = name, .cpus = next_cpus(alloc, &group, &rep)};
    }
    return to->n > 0 ? 0 : ENOENT;
}

int job_nodes_read(uint32_t job, struct job_nodes *nodes)
{
    struct slurm_abi_allocation *alloc = NULL;
    *nodes = (struct job_nodes){0};
    if (slurm_abi_allocation_lookup(job, &alloc) != SLURM_ABI_SUCCESS || alloc == NULL)
        return -1;
    void *hosts = alloc->node_list != NULL ? slurm_abi_hostlist_create(alloc->node_list) : NULL;
    int rc = hosts != NULL ? fill(nodes, alloc, hosts) : ENOENT;
    if (hosts != NULL)
        slurm_abi_hostlist_destroy(hosts);
    slurm_abi_free_allocation(alloc);
    if (rc == 0)
        return 0;
    job_nodes_free(nodes);
    errno = rc;
    return -1;
}

static void use(struct job_nodes *nodes, const char *list)
{
    void *hosts = list != NULL ? slurm_abi_hostlist_create(list) : NULL;
    char *name;
    while (hosts != NULL && (name = slurm_abi_hostlist_shift(hosts)) != NULL) {
        struct job_node *node = job_nodes_find(nodes, name);
        if (node != NULL)
            node->in_use = true;
        free(name);
    }
    if (hosts != NULL)
        slurm_abi_hostlist_destroy(hosts);
}

int job_nodes_use(uint32_t job, struct job_nodes *nodes)
{
    struct slurm_abi_step_records *records = NULL;
    if (slurm_abi_get_step(job, SLURM_ABI_NO_VAL, &records) != SLURM_ABI_SUCCESS)
        return -1;
    for (uint32_t i = 0; records != NULL && i < records->count; i++)
        if (records->steps[i].step_id.job_id == job &&
            records->steps[i].step_id.step_id != (uint32_t)STEP_EXTERN)
            use(nodes, records->steps[i].nodes);
    if (records != NULL)
        slurm_abi_free_steps(records);
    return 0;
}

char *job_nodes_idle(const struct job_nodes *nodes, uint32_t cpus, uint32_t *n)
{
    char *names = strdup("");
    uint32_t found = 0;
    *n = 0;
    for (uint32_t i = 0; i < nodes->n && found < cpus; i++) {
        if (nodes->nodes[i].in_use)
            continue;
        names = text_append(names, ",", nodes->nodes[i].name);
        found += nodes->nodes[i].cpus;
        ++*n;
    }
    if (found >= cpus)
        return names;
    free(names);
    return NULL;
}

struct job_node *job_nodes_find(const struct job_nodes *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        if (strcmp(nodes->nodes[i].name, name) == 0)
            return &nodes->nodes[i];
    return NULL;
}

void job_nodes_free(struct job_nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        free(nodes->nodes[i].name);
    free(nodes->nodes);
    *nodes = (struct job_nodes){0};
}
