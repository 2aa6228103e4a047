/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Looks servers and slots up in runs.
 */
#include "common/tracker/values/places.h"

#include <stdlib.h>

int places_add(struct places *places, uint32_t node, uint32_t n)
{
    struct places_run *end = places->nruns > 0 ? &places->runs[places->nruns - 1] : NULL;
    if (n == 0)
        return 0;
    if (n > UINT32_MAX - 1 - places->n)
        return -1;
    if (end != NULL && end->node + end->n == node) {
        end->n += n;
        places->n += n;
        return 0;
    }
    if (places->nruns == places->cap) {
        uint32_t cap = places->cap > 0 ? 2 * places->cap : 1;
        struct places_run *runs = realloc(places->runs, cap * sizeof *runs);
        if (runs == NULL)
            return -1;
        places->runs = runs;
        places->cap = cap;
        end = places->nruns > 0 ? &runs[places->nruns - 1] : NULL;
    }
    places->mixed = places->mixed || (end != NULL && node < end->node);
    places->runs[places->nruns++] = (struct places_run){places->n, node, n};
    places->n += n;
    return 0;
}

/* The last run whose first slot, or server, is not greater than a number. */
static const struct places_run *run_of(const struct places *places, uint32_t number, bool by_slot)
{
    uint32_t low = 0, high = places->nruns;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t first = by_slot ? places->runs[middle].slot : places->runs[middle].node;
        if (first <= number)
            low = middle;
        else
            high = middle;
    }
    return &places->runs[low];
}

uint32_t places_node(const struct places *places, uint32_t slot)
{
    const struct places_run *run = run_of(places, slot, true);
    return run->node + (slot - run->slot);
}

static uint32_t slot_in(const struct places_run *run, uint32_t node)
{
    return node >= run->node && node - run->node < run->n ? run->slot + (node - run->node)
                                                          : PLACES_NONE;
}

uint32_t places_slot(const struct places *places, uint32_t node)
{
    uint32_t slot = PLACES_NONE;
    if (places->nruns > 0 && !places->mixed)
        return slot_in(run_of(places, node, false), node);
    for (uint32_t i = 0; i < places->nruns && slot == PLACES_NONE; i++)
        slot = slot_in(&places->runs[i], node);
    return slot;
}

void places_free(struct places *places)
{
    free(places->runs);
    *places = (struct places){0};
}
