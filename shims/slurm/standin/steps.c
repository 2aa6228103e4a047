/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a job's steps, and where their tasks are placed. */
#include "shims/slurm/standin/steps.h"

#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* A spawned step. */
struct entry {
    struct entry *next;
    uint32_t step, ntasks;
    uint32_t *node_of; /* by rank; owned */
    int64_t start;
    int fd;
};

struct steps {
    const struct standin_step *first;
    pthread_mutex_t lock; /* guards all below */
    struct entry *list;
    uint32_t last; /* number of the youngest step */
};

struct steps *steps_new(const struct standin_step *first)
{
    struct steps *steps = calloc(1, sizeof *steps);
    if (steps == NULL)
        return NULL;
    steps->first = first;
    steps->last = first->step;
    pthread_mutex_init(&steps->lock, NULL);
    return steps;
}

/* ---- placing; the lock is held ---- */

/* How many tasks of a step each node may take. @return what they take together */
static uint64_t find_room(const struct steps *steps, const struct standin_join *join,
                          uint32_t nnodes, uint32_t *room)
{
    const struct standin_step *first = steps->first;
    bool bounded = first->limited && (join->flags & STANDIN_OVERCOMMIT) == 0;
    uint64_t all = 0;
    for (uint32_t n = 0; n < first->job_nodes; n++)
        room[n] = bounded ? first->cpus[n] : join->ntasks;
    for (uint32_t n = 0; bounded && (join->flags & STANDIN_FREE_CPUS) && n < first->job_nodes; n++)
        room[n] -= first->nodes[n].ntasks < room[n] ? first->nodes[n].ntasks : room[n];
    for (struct entry *e = steps->list; bounded && (join->flags & STANDIN_FREE_CPUS) && e != NULL;
         e = e->next)
        for (uint32_t i = 0; i < e->ntasks; i++)
            room[e->node_of[i]] -= room[e->node_of[i]] > 0;
    for (uint32_t n = 0; n < nnodes; n++) {
        uint32_t share = join->ntasks / nnodes + (n < join->ntasks % nnodes);
        if (join->per_node > 0 && join->per_node < room[n])
            room[n] = join->per_node;
        else if (!bounded && join->per_node == 0)
            room[n] = share;
        all += room[n];
    }
    return all;
}

/* The nodes were named. */
static int check_listed(const struct steps *steps, const struct standin_join *join, uint32_t *room,
                        const uint32_t *node_of)
{
    bool bounded = steps->first->limited && (join->flags & STANDIN_OVERCOMMIT) == 0;
    for (uint32_t i = 0; i < join->ntasks; i++) {
        if (node_of[i] >= steps->first->job_nodes)
            return STANDIN_NO_NODES;
        if (bounded && room[node_of[i]]-- == 0)
            return join->flags & STANDIN_FREE_CPUS ? STANDIN_BUSY : STANDIN_NO_NODES;
    }
    return 0;
}

static int place(const struct steps *steps, const struct standin_join *join, uint32_t *node_of)
{
    uint32_t room[STANDIN_NODES_MAX], rank = 0;
    uint32_t nnodes = join->nnodes > 0 ? join->nnodes : steps->first->job_nodes;
    if (nnodes > steps->first->job_nodes)
        return STANDIN_NO_NODES;
    if (nnodes > join->ntasks)
        nnodes = join->ntasks;
    if (join->listed > 0)
        nnodes = steps->first->job_nodes;
    uint64_t all = find_room(steps, join, nnodes, room);
    if (join->listed > 0)
        return check_listed(steps, join, room, node_of);
    if (all < join->ntasks)
        return join->flags & STANDIN_FREE_CPUS ? STANDIN_BUSY : STANDIN_TOO_MANY;
    bool cyclic = (join->flags & STANDIN_CYCLIC) != 0;
    for (uint32_t n = 0; rank < join->ntasks; n = (n + 1) % nnodes)
        for (; room[n] > 0 && rank < join->ntasks; room[n]--) {
            node_of[rank++] = n;
            if (cyclic) {
                room[n]--;
                break;
            }
        }
    return 0;
}

/* ---- the list ---- */

int steps_add(struct steps *steps, const struct standin_join *join, uint32_t *node_of, int fd,
              struct standin_joined *added)
{
    struct entry *e = calloc(1, sizeof *e);
    uint32_t *copy = calloc(join->ntasks, sizeof *copy);
    int rc = ENOMEM;
    if (e == NULL || copy == NULL)
        goto done;
    pthread_mutex_lock(&steps->lock);
    rc = place(steps, join, node_of);
    if (rc == 0) {
        memcpy(copy, node_of, join->ntasks * sizeof *copy);
        *e = (struct entry){.next = steps->list,
                            .step = ++steps->last,
                            .ntasks = join->ntasks,
                            .node_of = copy,
                            .start = time(NULL),
                            .fd = fd};
        steps->list = e;
        *added = (struct standin_joined){.step = e->step,
                                         .nnodes = steps->first->job_nodes,
                                         .limited = steps->first->limited,
                                         .start = e->start};
    }
    pthread_mutex_unlock(&steps->lock);
done:
    if (rc != 0) {
        free(copy);
        free(e);
    }
    return rc;
}

void steps_remove(struct steps *steps, uint32_t step)
{
    pthread_mutex_lock(&steps->lock);
    for (struct entry **at = &steps->list; *at != NULL; at = &(*at)->next) {
        struct entry *e = *at;
        if (e->step != step)
            continue;
        *at = e->next;
        free(e->node_of);
        free(e);
        break;
    }
    pthread_mutex_unlock(&steps->lock);
}

static struct entry *find(const struct steps *steps, uint32_t job, uint32_t step)
{
    struct entry *e = job == steps->first->job ? steps->list : NULL;
    while (e != NULL && e->step != step)
        e = e->next;
    return e;
}

int steps_start_of(struct steps *steps, uint32_t job, uint32_t step, int64_t *start)
{
    int rc = 0;
    pthread_mutex_lock(&steps->lock);
    const struct entry *e = find(steps, job, step);
    if (job == steps->first->job && step == steps->first->step)
        *start = steps->first->start;
    else if (e != NULL)
        *start = e->start;
    else
        rc = SLURM_ABI_INVALID_JOB_ID;
    pthread_mutex_unlock(&steps->lock);
    return rc;
}

int steps_signal(struct steps *steps, uint32_t job, uint32_t step, int32_t sig)
{
    pthread_mutex_lock(&steps->lock);
    const struct entry *e = find(steps, job, step);
    int rc = e == NULL ? SLURM_ABI_INVALID_JOB_ID : 0;
    if (e != NULL && send(e->fd, &sig, sizeof sig, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof sig)
        rc = errno;
    pthread_mutex_unlock(&steps->lock);
    return rc;
}

static void list_nodes_of(FILE *out, const struct entry *e, uint32_t nnodes)
{
    const char *comma = "";
    for (uint32_t n = 0; n < nnodes; n++)
        for (uint32_t i = 0; i < e->ntasks; i++)
            if (e->node_of[i] == n) {
                fprintf(out, "%snode%u", comma, n);
                comma = ",";
                break;
            }
}

char *steps_list(struct steps *steps)
{
    char *text = NULL;
    size_t len;
    const struct standin_step *first = steps->first;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL)
        return NULL;
    pthread_mutex_lock(&steps->lock);
    fprintf(out, "%u %u %lld ", first->job, first->step, (long long)first->start);
    for (uint32_t n = 0; n < first->nnodes; n++)
        fprintf(out, "%s%s", n > 0 ? "," : "", first->nodes[n].name);
    for (const struct entry *e = steps->list; e != NULL; e = e->next) {
        fprintf(out, "\n%u %u %lld ", first->job, e->step, (long long)e->start);
        list_nodes_of(out, e, first->job_nodes);
    }
    pthread_mutex_unlock(&steps->lock);
    fclose(out);
    return text;
}
