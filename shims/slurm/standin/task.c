/** @file
 * A task between fork and exec.
 */
#include "shims/slurm/standin/run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set(char ***env, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set(char ***env, const char *name, const char *fmt, ...)
{
    char *value;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&value, fmt, ap) < 0)
        value = NULL;
    va_end(ap);
    if (!value || slurm_abi_env_overwrite(env, name, value) != 1)
        _exit(ENOMEM);
    free(value);
}

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

    set(env, "SLURM_JOB_ID", "%u", step->job);
    set(env, "SLURM_JOBID", "%u", step->job);
    set(env, "SLURM_STEP_ID", "%u", step->step);
    set(env, "SLURM_STEPID", "%u", step->step);
    set(env, "SLURM_MPI_TYPE", "muster");
    for (int i = 0; i < 3; i++) {
        set(env, counts[i], "%u", step->ntasks);
        set(env, nodes[i], "%u", step->nnodes);
        set(env, lists[i], "%s", names);
    }
    for (int i = 0; i < 2; i++)
        set(env, per_node[i], "%s", tasks);
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
    set(env, "SLURM_NODEID", "%u", index);
    set(env, "SLURMD_NODENAME", "%s", node->name);
    set(env, "SLURM_PROCID", "%u", node->ranks[slot]);
    set(env, "SLURM_LOCALID", "%u", slot);
    set(env, "SLURM_GTIDS", "%s", ranks);
    set(env, "SLURM_TASK_PID", "%d", (int)getpid());
    free(ranks);
}

static void call_hook(struct run *run, uint32_t index, uint32_t slot)
{
    const struct standin_step *step = &run->step;
    struct slurm_abi_task_info info = {
        .gtaskid = step->nodes[index].ranks[slot],
        .ltaskid = (int)slot,
        .ltasks = step->nodes[index].ntasks,
        .nnodes = step->nnodes,
        .nodeid = index,
        .ntasks = step->ntasks,
        .step_id = slurm_abi_step_id(step->job, step->step, SLURM_ABI_NO_VAL),
    };

    if (run->plugin.task(&info, &run->env) != SLURM_ABI_SUCCESS) {
        slurm_abi_error("Failed to invoke MPI plugin task: %s", strerror(errno));
        _exit(1); /* as slurmstepd */
    }
}

void task_run(struct run *run, uint32_t node, uint32_t slot)
{
    const struct standin_node *here = &run->step.nodes[node];
    int err;

    if (io_become(run->io, here->ranks[slot]) < 0)
        _exit(1);
    set_step(&run->env, &run->step);
    set_task(&run->env, here, node, slot);
    signal(SIGPIPE, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &run->files);
    call_hook(run, node, slot);
    sigprocmask(SIG_SETMASK, &run->mask, NULL);
    execvpe(run->argv[0], run->argv, run->env);
    err = errno;
    slurm_abi_error("execve(): %s: %s", run->argv[0], strerror(err));
    _exit(err); /* as slurmstepd */
}
