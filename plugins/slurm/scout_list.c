/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of this user, as slurmctld lists them. */
#include "plugins/slurm/scout_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void scout_list_free(struct scout *scout)
{
    for (uint32_t i = 0; i < scout->nseen; i++) {
        free(scout->seen[i].nodes);
        free(scout->seen[i].srun_host);
    }
    free(scout->seen);
    scout->seen = NULL;
    scout->nseen = 0;
}

static int by_number(const void *left, const void *right)
{
    const struct scout_seen *a = left, *b = right;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->component < b->component ? -1 : a->component > b->component;
}

bool scout_same_step(const struct scout_seen *a, const struct scout_seen *b)
{
    if (a->step != b->step)
        return false;
    return a->job == b->job || (a->srun_pid != 0 && a->srun_pid == b->srun_pid &&
                                strcmp(a->srun_host, b->srun_host) == 0);
}

/* The list is by number, so the first component of a step is the one that names it. */
static bool is_first(const struct scout *scout, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (scout_same_step(&scout->seen[k], &scout->seen[i]))
            return false;
    return true;
}

/* When slurmctld started a step, as its address has it: the first component of its first job. */
static uint64_t start_of(const struct scout *scout, const struct scout_seen *first)
{
    uint64_t start = first->start;
    for (uint32_t i = 0; i < scout->nseen; i++)
        if (scout->seen[i].job == first->job && scout->seen[i].step == first->step &&
            scout->seen[i].start < start)
            start = scout->seen[i].start;
    return start;
}

bool scout_list(struct scout *scout)
{
    struct slurm_abi_step_records *records = NULL;
    if (slurm_abi_get_step(SLURM_ABI_NO_VAL, SLURM_ABI_NO_VAL, &records) != SLURM_ABI_SUCCESS)
        return false;
    struct scout_seen *seen = calloc(records->count + 1ul, sizeof *seen);
    uint32_t n = 0;
    for (uint32_t i = 0; i < records->count; i++) {
        const struct slurm_abi_step_record *r = &records->steps[i];
        if (r->user_id != getuid() || r->step_id.step_id >= SLURM_ABI_STEPS_END ||
            r->nodes == NULL || r->start_time <= 0)
            continue;
        seen[n++] = (struct scout_seen){.job = r->step_id.job_id,
                                        .step = r->step_id.step_id,
                                        .component = r->step_id.step_het_comp,
                                        .start = (uint64_t)r->start_time,
                                        .nodes = strdup(r->nodes),
                                        .srun_host = strdup(r->srun_host ? r->srun_host : ""),
                                        .srun_pid = r->srun_pid};
    }
    scout->now = (uint64_t)records->now;
    slurm_abi_free_steps(records);
    qsort(seen, n, sizeof *seen, by_number);
    scout_list_free(scout);
    scout->seen = seen;
    scout->nseen = n;
    return true;
}

int scout_by_age(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return by_number(a->first, b->first);
}

uint32_t scout_list_steps(const struct scout *scout, struct step **steps)
{
    uint32_t n = 0;
    *steps = calloc(scout->nseen + 1ul, sizeof **steps);
    for (uint32_t i = 0; i < scout->nseen; i++)
        if (is_first(scout, i))
            (*steps)[n++] = (struct step){&scout->seen[i], start_of(scout, &scout->seen[i])};
    qsort(*steps, n, sizeof **steps, scout_by_age);
    return n;
}
