/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts tasks and nodes, and puts each task on its node. */
#include "shims/standin/plan.h"

#include "shims/standin/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int plan_wrong(const char *what, const char *value, const char *expected)
{
    fprintf(stderr, "musterrun: %s: \"%s\" is not %s; see --help\n", what, value, expected);
    return EXIT_USAGE;
}

/* By "0,0,1": which node each rank is on. @return how many ranks, or 0: that is no such list */
static uint32_t read_nodes(const char *list, uint32_t *node_of)
{
    uint32_t ntasks = 0;
    char *end = NULL;
    do {
        unsigned long node = isdigit((unsigned char)*list) ? strtoul(list, &end, 10) : NODES_MAX;
        if (node >= NODES_MAX || ntasks == TASKS_MAX || (*end != ',' && *end != '\0'))
            return 0;
        node_of[ntasks++] = (uint32_t)node;
        list = end + 1;
    } while (*end == ',');
    return ntasks;
}

/* How many tasks and nodes there are. @param node_of for TASKS_MAX; set where the user says it */
static int count(struct standin_step *step, const struct numbers *numbers, uint32_t *node_of)
{
    step->nnodes = numbers->nodes > 0 ? (uint32_t)numbers->nodes : 1;
    step->ntasks = numbers->tasks > 0 ? (uint32_t)numbers->tasks : step->nnodes;
    if (!numbers->arbitrary)
        return -1;
    step->ntasks = read_nodes(numbers->arbitrary, node_of);
    step->nnodes = 0;
    for (uint32_t rank = 0; rank < step->ntasks; rank++)
        if (node_of[rank] >= step->nnodes)
            step->nnodes = node_of[rank] + 1;
    if (step->ntasks == 0)
        return plan_wrong("--distribution=arbitrary", numbers->arbitrary, "a list of 0 to 998");
    if ((numbers->tasks > 0 && numbers->tasks != (long)step->ntasks) ||
        (numbers->nodes > 0 && numbers->nodes != (long)step->nnodes)) {
        fprintf(stderr, "musterrun: --distribution=arbitrary is of %u tasks on %u nodes\n",
                step->ntasks, step->nnodes);
        return EXIT_USAGE;
    }
    return -1;
}

static int finish(struct run *run, const struct numbers *numbers)
{
    static uint32_t node_of[TASKS_MAX];
    struct standin_step *step = &run->step;
    int status = count(step, numbers, node_of);
    if (status >= 0)
        return status;
    step->job = (uint32_t)getpid(); /* no other run has it at the same time */
    step->start = time(NULL);
    run->timeout = numbers->timeout * 1000;
    step->end = run->timeout > 0 ? step->start + run->timeout / 1000 : 0;
    run->faults->seed = (uint64_t)numbers->seed;
    if (step->ntasks < step->nnodes) {
        fprintf(stderr, "musterrun: warning: %u tasks run on %u nodes, not on %u\n", step->ntasks,
                step->ntasks, step->nnodes);
        step->nnodes = step->ntasks;
    }
    if (run->input >= (long)step->ntasks) {
        fprintf(stderr, "musterrun: --input=%ld: there are ranks 0 to %u\n", run->input,
                step->ntasks - 1);
        return EXIT_USAGE;
    }
    if (faults_direct_any(run->faults) && strcmp(run->rm->name, "slurm") != 0) {
        fprintf(stderr, "musterrun: --fault of direct connections takes --rm=slurm\n");
        return EXIT_USAGE;
    }
    for (unsigned i = 0; i < run->faults->n; i++) {
        if (run->faults->list[i].node >= (long)step->nnodes) {
            fprintf(stderr, "musterrun: --fault: there are nodes 0 to %u\n", step->nnodes - 1);
            return EXIT_USAGE;
        }
    }
    if (!numbers->arbitrary)
        layout_deal(step, numbers->plane, node_of);
    for (uint32_t n = 0; n < step->nnodes; n++) {
        if (!layout_has_task(step, node_of, n)) {
            fprintf(stderr, "musterrun: --distribution: no task is on node%u\n", n);
            return EXIT_USAGE;
        }
    }
    if (numbers->conf && numbers->conf_node >= (long)step->nnodes) {
        fprintf(stderr, "musterrun: --conf: there are nodes 0 to %u\n", step->nnodes - 1);
        return EXIT_USAGE;
    }
    if (layout_nodes(step, node_of, NULL) < 0 || layout_cpus(step, (uint32_t)numbers->slots) < 0) {
        fprintf(stderr, "musterrun: out of memory\n");
        return 1;
    }
    if (numbers->conf)
        step->nodes[numbers->conf_node].conf = numbers->conf;
    return -1;
}

/* What --host, and the programs behind ":", say of the number of tasks and their places. */
static int settle(struct run *run, struct numbers *numbers, char **argv)
{
    struct err err = {0};
    char *list;
    if (programs_read(run, argv, numbers->tasks, &err) < 0) {
        fprintf(stderr, "musterrun: %s\n", err.text);
        return EXIT_USAGE;
    }
    for (unsigned i = 1; i < run->nprograms; i++)
        numbers->tasks += run->programs[i].count;
    if (numbers->tasks > TASKS_MAX)
        return plan_wrong("-n", "the sum of all programs", "1 to 10000");
    if (numbers->hosts.n == 0)
        return -1;
    if (numbers->nodes > 0 || numbers->arbitrary || numbers->plane > 0) {
        fprintf(stderr, "musterrun: --host goes without -N and --distribution\n");
        return EXIT_USAGE;
    }
    if (hosts_place(&numbers->hosts, (uint32_t)numbers->tasks, &list) < 0) {
        fprintf(stderr, "musterrun: out of memory\n");
        return 1;
    }
    numbers->arbitrary = list; /* until we end */
    return -1;
}

int plan(struct numbers *numbers, char **programs)
{
    int status = settle(numbers->run, numbers, programs);
    return status >= 0 ? status : finish(numbers->run, numbers);
}
