/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Which ranks run on which node of the step, all its components together.
 *
 * Most steps have one component. Those of several have a slurmstepd for each component on each of
 * its nodes, and no node is of two: srun sees to it, and slurmctld for heterogeneous jobs. They are
 * of two kinds.
 *
 * "srun a : b" in one allocation: they have one job id and step id; the components are numbered,
 * and slurmstepd's socket has the number in its name. One srun has made them all, for slurmctld
 * gives no step id twice.
 *
 * Over parts of a heterogeneous job: they have a job id each and one step id. Which jobs' steps of
 * that id are of one srun is on slurmctld's record: the host and the process of the srun.
 *
 * srun makes all before it starts any. Ranks count through the components in their order.
 *
 * That a step is of the second kind, and the ids of the other jobs, are in the environment that
 * srun gives to tasks. A user may write there what he likes: what comes of it is used only as far
 * as slurmctld's records bear it out, which have to name the same user. So he can join his own
 * steps only, which the task hook then refuses (is_ours() in mpi_muster.c), or not join them.
 */
#include "plugins/slurm/layout.h"

#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many jobs in a row may have no step of our srun. After more of them root asks slurmctld no
 * further, since the environment, which is the user's, may lead nowhere. */
enum { MISSES_MAX = 8 };

static int fill_node(struct boot_node *node, char *name, const uint32_t *ranks, uint32_t ntasks,
                     uint32_t first)
{
    node->name = name;
    node->ntasks = ntasks;
    node->ranks = calloc(ntasks ? ntasks : 1, sizeof(*ranks));
    if (!name || !node->ranks)
        return -1;
    for (uint32_t k = 0; k < ntasks; k++)
        node->ranks[k] = first + ranks[k];
    return 0;
}

/* Takes the next of hosts as the next node. */
static int add_node(struct facts *facts, const struct slurm_abi_step_layout *layout, uint32_t i,
                    void *hosts, struct err *err)
{
    struct boot *boot = &facts->boot;
    struct boot_node *node = &boot->nodes[boot->nnodes++];
    uint32_t first;
    *node = (struct boot_node){.name = NULL};
    if (fill_node(node, slurm_abi_hostlist_shift(hosts), layout->tids[i], layout->tasks[i],
                  boot->ntasks) < 0)
        return err_set(err, "the layout of step %u.%u has fewer nodes than it says", facts->job,
                       facts->step);
    if (strcmp(node->name, facts->node) != 0)
        return 0;
    if (boot->node != UINT32_MAX)
        return err_set(err,
                       "node %s is in components %u and %u of step %u.%u: muster serves one "
                       "component on a node",
                       facts->node, boot_app_of(boot, boot_here(boot)->ranks[0], &first),
                       boot->napps - 1, facts->job, facts->step);
    boot->node = boot->nnodes - 1;
    return 0;
}

/* Appends the nodes of a layout, in the order of its host list, as the next application; its tasks
 * are counted on from those before. */
static int add_layout(struct facts *facts, const struct slurm_abi_step_layout *layout,
                      struct err *err)
{
    struct boot *boot = &facts->boot;
    struct boot_node *nodes;
    uint32_t *apps;
    int rc = 0;
    if (!layout->node_list || !layout->tasks || !layout->tids || layout->node_cnt == 0)
        return err_set(err, "the layout of step %u.%u that slurmctld gives has no nodes",
                       facts->job, facts->step);
    nodes = realloc(boot->nodes, ((size_t)boot->nnodes + layout->node_cnt) * sizeof(*nodes));
    if (nodes)
        boot->nodes = nodes;
    apps = realloc(boot->apps, (boot->napps + 1) * sizeof(*apps));
    if (apps) {
        boot->apps = apps;
        apps[boot->napps++] = layout->task_cnt;
    }
    void *hosts = slurm_abi_hostlist_create(layout->node_list);
    if (!nodes || !apps || !hosts)
        rc = err_set(err, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < layout->node_cnt; i++)
        rc = add_node(facts, layout, i, hosts, err);
    boot->ntasks += layout->task_cnt;
    if (hosts)
        slurm_abi_hostlist_destroy(hosts);
    return rc;
}

/* @return a layout, or NULL with errno set */
static struct slurm_abi_step_layout *ask_layout(const struct facts *facts, uint32_t job,
                                                uint32_t component)
{
    struct slurm_abi_step_id id = slurm_abi_step_id(job, facts->step, component);
    return slurm_abi_step_layout_get(&id);
}

static int no_layout(const struct facts *facts, uint32_t job, struct err *err)
{
    return err_set(err, "node %s cannot get the layout of step %u.%u from slurmctld: %s",
                   facts->node, job, facts->step, slurm_abi_strerror(errno));
}

/* The numbered components of one job: as many as there are. One whose tasks have ended already is
 * missed, which the task hook sees. */
static int read_components(struct facts *facts, struct err *err)
{
    for (uint32_t app = 0;; app++) {
        struct slurm_abi_step_layout *layout = ask_layout(facts, facts->job, app);
        if (!layout && app > 0 && errno == SLURM_ABI_INVALID_JOB_ID)
            return 0;
        if (!layout)
            return no_layout(facts, facts->job, err);
        int rc = add_layout(facts, layout, err);
        slurm_abi_step_layout_free(layout);
        if (rc < 0)
            return -1;
    }
}

/* @return a number of the environment; 0: it is not there, or none */
static uint32_t env_number(char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; env && *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return (uint32_t)strtoul(*env + len + 1, NULL, 10);
    }
    return 0;
}

/* @return the record of this step's id in another job, or of our own, or NULL with errno set */
static struct slurm_abi_step_records *ask_record(const struct facts *facts, uint32_t job)
{
    struct slurm_abi_step_records *records = NULL;
    if (slurm_abi_get_step(job, facts->step, &records) != SLURM_ABI_SUCCESS)
        return NULL;
    if (records && records->count == 1 && records->steps && records->steps->step_id.job_id == job &&
        records->steps->step_id.step_id == facts->step)
        return records;
    if (records)
        slurm_abi_free_steps(records);
    errno = ENOENT;
    return NULL;
}

/* Whether one srun of our user has made both. */
static bool same_srun(const struct facts *facts, const struct slurm_abi_step_record *a,
                      const struct slurm_abi_step_record *b)
{
    return a->user_id == facts->user.uid && b->user_id == facts->user.uid && a->srun_host &&
           b->srun_host && strcmp(a->srun_host, b->srun_host) == 0 && a->srun_pid != 0 &&
           a->srun_pid == b->srun_pid;
}

/* The job that component i may be of: as the environment names them, else that far behind the
 * first, since slurmctld numbers the components of a job in a row. 0: there is none. */
static uint32_t guess_job(char *const *env, uint32_t i)
{
    char name[48];
    if (env_number(env, "SLURM_JOB_ID_HET_GROUP_0") == 0)
        return env_number(env, "SLURM_JOB_ID") + i;
    snprintf(name, sizeof(name), "SLURM_JOB_ID_HET_GROUP_%u", i);
    return env_number(env, name);
}

/* The jobs of the components that our srun has started, in their order; ours alone where the
 * guesses do not lead to it. */
static int find_jobs(struct facts *facts, char *const *env, uint32_t ntasks, struct err *err)
{
    struct slurm_abi_step_records *own = ask_record(facts, facts->job), *other;
    uint32_t jobs[FACTS_JOBS_MAX], njobs = 0, counted = 0;
    uint32_t last = 0, misses = 0;
    bool found = false;
    if (!own)
        return err_set(err, "node %s cannot get the record of step %u.%u from slurmctld: %s",
                       facts->node, facts->job, facts->step, slurm_abi_strerror(errno));
    for (uint32_t i = 0; i < FACTS_JOBS_MAX && counted < ntasks && misses < MISSES_MAX; i++) {
        uint32_t job = guess_job(env, i);
        if (job <= last) /* none, or not behind the one before as slurmctld numbers them */
            break;
        last = job;
        misses++;
        other = ask_record(facts, job);
        if (other && same_srun(facts, own->steps, other->steps)) {
            misses = 0;
            jobs[njobs++] = job;
            counted += other->steps->num_tasks;
            found = found || job == facts->job;
        }
        if (other)
            slurm_abi_free_steps(other);
    }
    slurm_abi_free_steps(own);
    if (found) {
        memcpy(facts->jobs, jobs, njobs * sizeof(*jobs));
        facts->njobs = njobs;
    }
    return 0;
}

/* Our step is the part of one over several jobs, which has that many tasks. */
static int read_jobs(struct facts *facts, char *const *env, uint32_t ntasks, struct err *err)
{
    int rc = find_jobs(facts, env, ntasks, err);
    for (uint32_t app = 0; rc == 0 && app < facts->njobs; app++) {
        struct slurm_abi_step_layout *layout =
            ask_layout(facts, facts->jobs[app], SLURM_ABI_NO_VAL);
        rc = layout ? add_layout(facts, layout, err) : no_layout(facts, facts->jobs[app], err);
        if (layout)
            slurm_abi_step_layout_free(layout);
    }
    if (rc == 0 && facts->boot.ntasks != ntasks)
        rc = err_set(err,
                     "slurmctld has %u of the %u tasks of step %u.%u on record: a component of it "
                     "has ended already, or the environment of its srun has another job's "
                     "SLURM_JOB_ID_HET_GROUP_<n>",
                     facts->boot.ntasks, ntasks, facts->job, facts->step);
    return rc;
}

int layout_read(struct facts *facts, char *const *env, struct err *err)
{
    uint32_t ntasks = env_number(env, "SLURM_STEP_NUM_TASKS");
    int rc;
    facts->boot.node = UINT32_MAX;
    if (facts->component != SLURM_ABI_NO_VAL) {
        rc = read_components(facts, err);
    } else {
        struct slurm_abi_step_layout *own = ask_layout(facts, facts->job, SLURM_ABI_NO_VAL);
        if (!own)
            return no_layout(facts, facts->job, err);
        rc = ntasks > own->task_cnt ? read_jobs(facts, env, ntasks, err)
                                    : add_layout(facts, own, err);
        slurm_abi_step_layout_free(own);
    }
    if (rc == 0 && facts->boot.node == UINT32_MAX)
        rc = err_set(err, "the layout of step %u.%u that slurmctld gives does not name node %s",
                     facts->job, facts->step, facts->node);
    return rc;
}
