/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A task between fork and exec: its environment, and the plugin's hook.
 */
#include "shims/slurm/standin/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The names, or how many tasks each node has: "2(x3),1". */
static char *list_nodes(const struct standin_step *step, bool tasks)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        _exit(ENOMEM);
    for (uint32_t n = 0, same; n < step->nnodes; n += same) {
        const char *comma = n > 0 ? "," : "";
        for (same = 1; tasks && n + same < step->nnodes; same++)
            if (step->nodes[n + same].ntasks != step->nodes[n].ntasks)
                break;
        if (!tasks)
            fprintf(out, "%s%s", comma, step->nodes[n].name);
        else if (same > 1)
            fprintf(out, "%s%u(x%u)", comma, step->nodes[n].ntasks, same);
        else
            fprintf(out, "%s%u", comma, step->nodes[n].ntasks);
    }
    fclose(out);
    return text;
}

static void set_step(char ***env, const struct standin_step *step)
{
    static const char *const counts[] = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"};
    static const char *const nodes[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES",
                                        "SLURM_STEP_NUM_NODES"};
    static const char *const lists[] = {"SLURM_NODELIST", "SLURM_JOB_NODELIST",
                                        "SLURM_STEP_NODELIST"};
    static const char *const per_node[] = {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"};
    char *names = list_nodes(step, false), *tasks = list_nodes(step, true);
    task_setenv(env, "SLURM_JOB_ID", "%u", step->job);
    task_setenv(env, "SLURM_JOBID", "%u", step->job);
    task_setenv(env, "SLURM_STEP_ID", "%u", step->step);
    task_setenv(env, "SLURM_STEPID", "%u", step->step);
    task_setenv(env, "SLURM_MPI_TYPE", "muster");
    task_setenv(env, "SLURM_CLUSTER_NAME", "%s", STANDIN_CLUSTER);
    task_setenv(env, "SLURM_JOB_CPUS_PER_NODE", "%s", tasks); /* as allocation_new() has it */
    for (int i = 0; i < 3; i++) {
        task_setenv(env, counts[i], "%u", step->ntasks);
        task_setenv(env, nodes[i], "%u", step->nnodes);
        task_setenv(env, lists[i], "%s", names);
    }
    for (int i = 0; i < 2; i++)
        task_setenv(env, per_node[i], "%s", tasks);
    free(names);
    free(tasks);
}

static void set_task(char ***env, const struct standin_node *node, uint32_t index, uint32_t slot)
{
    char *ranks = NULL;
    size_t len;
    FILE *out = open_memstream(&ranks, &len);
    if (!out)
        _exit(ENOMEM);
    for (uint32_t i = 0; i < node->ntasks; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", node->ranks[i]);
    fclose(out);
    task_setenv(env, "SLURM_NODEID", "%u", index);
    task_setenv(env, "SLURMD_NODENAME", "%s", node->name);
    task_setenv(env, "SLURM_PROCID", "%u", node->ranks[slot]);
    task_setenv(env, "SLURM_LOCALID", "%u", slot);
    task_setenv(env, "SLURM_GTIDS", "%s", ranks);
    task_setenv(env, "SLURM_TASK_PID", "%d", (int)getpid());
    free(ranks);
}

static void call_hook(struct run *run, uint32_t index, uint32_t slot)
{
    const struct standin_step *step = &run->step;
    struct slurm_raw_task_info info = {
        .gtaskid = step->nodes[index].ranks[slot],
        .ltaskid = (int)slot,
        .ltasks = step->nodes[index].ntasks,
        .nnodes = step->nnodes,
        .nodeid = index,
        .ntasks = step->ntasks,
        .step_id = slurm_raw_step_id(step->job, step->step, SLURM_ABI_NO_VAL),
    };

    if (((struct slurm_run *)run->state)->plugin.task(&info, &run->env) != SLURM_ABI_SUCCESS) {
        say_error("Failed to invoke MPI plugin task: %s", strerror(errno));
        _exit(1); /* as slurmstepd */
    }
}

void task_run(struct node *node, uint32_t slot)
{
    struct run *run = node->run;
    task_open(node, slot);
    set_step(&run->env, &run->step);
    set_task(&run->env, node->here, node->index, slot);
    call_hook(run, node->index, slot);
    task_exec(run, node->here->ranks[slot]);
}
