/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Asks slurmctld for the nodes and processors of each of the step's jobs, and joins the answers.
 * Where slurmctld does not answer, the step starts without that knowledge.
 */
#include "plugins/slurm/allocation.h"

#include "common/util/log.h"
#include "common/util/text.h"
#include "plugins/slurm/job_nodes.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the step's node of that name its slots. The step's nodes mostly stand in the allocation's
 * order, so the search begins where the last one ended. */
static void set_slots(struct boot *boot, uint32_t *next, const char *name, uint32_t slots)
{
    for (uint32_t i = 0; i < boot->nnodes; i++) {
        uint32_t at = (*next + i) % boot->nnodes;
        if (strcmp(boot->nodes[at].name, name) == 0) {
            boot->nodes[at].slots = slots;
            *next = at + 1;
            return;
        }
    }
}

/* Appends the nodes to those of the jobs before. */
static int fill(struct boot *boot, const struct job_nodes *nodes)
{
    struct boot_allocation *to = &boot->allocation;
    uint32_t next = 0;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -1;
    fputs(to->nodes, out);
    for (uint32_t i = 0; i < nodes->n; i++) {
        const struct job_node *node = &nodes->nodes[i];
        fprintf(out, "%s%s", to->nnodes > 0 ? "," : "", node->name);
        set_slots(boot, &next, node->name, node->cpus);
        to->nnodes++;
        to->slots += node->cpus;
    }
    if (fclose(out) != 0 || !text)
        return -1;
    free(to->nodes);
    to->nodes = text;
    return 0;
}

/* @return 0, -1, or 1: it is not known */
static int ask(struct boot *boot, uint32_t job, struct err *err)
{
    struct job_nodes nodes;
    int rc = 1;
    if (job_nodes_read(job, &nodes) == 0)
        rc = fill(boot, &nodes) < 0 ? err_set(err, "out of memory") : 0;
    else
        log_warning("slurmctld does not tell of the allocation of job %u: %s; programs will not "
                    "find its nodes and slots",
                    job, slurm_abi_strerror(errno));
    job_nodes_free(&nodes);
    return rc;
}

static void forget(struct boot *boot)
{
    struct boot_allocation *to = &boot->allocation;
    to->nodes[0] = '\0';
    to->nnodes = to->slots = 0;
    for (uint32_t i = 0; i < boot->nnodes; i++)
        boot->nodes[i].slots = 0;
}

static char *cluster_name(void)
{
    char *name = slurm_abi_cluster_name();
    return name ? name : strdup("");
}

static char *version(void)
{
    uint32_t number = slurm_abi_version();
    return text_format("%u.%02u.%u", number >> 16, number >> 8 & 255, number & 255);
}

int allocation_read(struct boot *boot, const uint32_t *jobs, uint32_t njobs, struct err *err)
{
    struct boot_allocation *to = &boot->allocation;
    int rc = 0;
    to->rm = strdup("slurm");
    to->rm_version = version();
    to->cluster = cluster_name();
    to->nodes = strdup("");
    if (!to->rm || !to->rm_version || !to->cluster || !to->nodes)
        return err_set(err, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < njobs; i++)
        rc = ask(boot, jobs[i], err);
    if (rc > 0)
        forget(boot);
    return rc < 0 ? -1 : 0;
}
