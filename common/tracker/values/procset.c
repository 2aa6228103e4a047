/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Builds sets in canonical order, unites, subtracts and compares them, and writes and reads their
 * bytes.
 */
#include "common/tracker/values/procset.h"

#include <stdlib.h>
#include <string.h>

static struct procset_part *find(const struct procset *set, const char *nspace)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        if (strcmp(set->parts[i].nspace, nspace) == 0)
            return &set->parts[i];
    return NULL;
}

static struct procset_part *part_of(struct procset *set, const char *nspace)
{
    struct procset_part *part = find(set, nspace);
    size_t len = strlen(nspace);
    if (part != NULL || len == 0 || len > PROCSET_NAME_MAX)
        return part;
    struct procset_part *parts = realloc(set->parts, (set->nparts + 1) * sizeof *parts);
    if (parts == NULL)
        return NULL;
    set->parts = parts;
    part = &parts[set->nparts++];
    *part = (struct procset_part){0};
    memcpy(part->nspace, nspace, len + 1);
    return part;
}

int procset_add(struct procset *set, const char *nspace, uint32_t first, uint32_t last)
{
    struct procset_part *part = first > last ? NULL : part_of(set, nspace);
    return part == NULL ? -1 : ranges_add(&part->ranks, first, last);
}

static int by_name(const void *a, const void *b)
{
    const struct procset_part *x = a, *y = b;
    return strcmp(x->nspace, y->nspace);
}

void procset_canonical(struct procset *set)
{
    if (set->nparts > 1)
        qsort(set->parts, set->nparts, sizeof *set->parts, by_name);
    for (uint32_t i = 0; i < set->nparts; i++)
        ranges_canonical(&set->parts[i].ranks);
}

bool procset_has_of(const struct procset *set, const char *nspace)
{
    return find(set, nspace) != NULL;
}

uint64_t procset_size(const struct procset *set)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < set->nparts; i++)
        n += ranges_count(&set->parts[i].ranks);
    return n;
}

bool procset_has(const struct procset *set, const char *nspace, uint32_t rank)
{
    const struct procset_part *part = find(set, nspace);
    return part != NULL && ranges_have(&part->ranks, rank);
}

bool procset_has_first(const struct procset *set, const struct procset *one)
{
    return one->nparts > 0 &&
           procset_has(set, one->parts[0].nspace, one->parts[0].ranks.v[0].first);
}

uint64_t procset_place(const struct procset *set, const char *nspace, uint32_t rank)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct ranges *ranks = &set->parts[i].ranks;
        bool here = strcmp(set->parts[i].nspace, nspace) == 0;
        for (uint32_t j = 0; j < ranks->n; j++) {
            const struct range *r = &ranks->v[j];
            if (here && rank >= r->first && rank <= r->last)
                return before + rank - r->first;
            before += (uint64_t)r->last - r->first + 1;
        }
    }
    return UINT64_MAX;
}

bool procset_at_place(const struct procset *set, uint64_t place, const struct procset_part **part,
                      uint32_t *rank)
{
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct ranges *ranks = &set->parts[i].ranks;
        for (uint32_t j = 0; j < ranks->n; j++) {
            uint64_t n = (uint64_t)ranks->v[j].last - ranks->v[j].first + 1;
            if (place < n) {
                *part = &set->parts[i];
                *rank = ranks->v[j].first + (uint32_t)place;
                return true;
            }
            place -= n;
        }
    }
    return false;
}

int procset_unite(struct procset *set, const struct procset *more)
{
    int rc = 0;
    for (uint32_t i = 0; i < more->nparts && rc == 0; i++) {
        struct procset_part *part = part_of(set, more->parts[i].nspace);
        rc = part != NULL ? ranges_unite(&part->ranks, &more->parts[i].ranks) : -1;
    }
    procset_canonical(set);
    return rc;
}

/* What is left of first..last without the ranges of @p without. */
static int add_except(struct procset *set, const char *nspace, struct range range,
                      const struct procset_part *without)
{
    uint64_t at = range.first;
    for (uint32_t i = 0; without != NULL && i < without->ranks.n && at <= range.last; i++) {
        const struct range *hole = &without->ranks.v[i];
        if (hole->last < at || hole->first > range.last)
            continue;
        if (hole->first > at && procset_add(set, nspace, (uint32_t)at, hole->first - 1) != 0)
            return -1;
        at = (uint64_t)hole->last + 1;
    }
    return at > range.last ? 0 : procset_add(set, nspace, (uint32_t)at, range.last);
}

int procset_except(struct procset *set, const struct procset *from, const struct procset *without)
{
    int rc = 0;
    for (uint32_t i = 0; i < from->nparts && rc == 0; i++) {
        const struct procset_part *part = &from->parts[i];
        for (uint32_t j = 0; j < part->ranks.n && rc == 0; j++)
            rc = add_except(set, part->nspace, part->ranks.v[j], find(without, part->nspace));
    }
    procset_canonical(set);
    return rc;
}

void procset_drop(struct procset *set, const char *nspace)
{
    struct procset_part *part = find(set, nspace);
    if (part == NULL)
        return;
    ranges_free(&part->ranks);
    set->nparts--;
    memmove(part, part + 1, (size_t)(set->parts + set->nparts - part) * sizeof *part);
}

bool procset_within(const struct procset *set, const struct procset *all)
{
    struct procset rest = {0};
    bool within = procset_except(&rest, set, all) == 0 && rest.nparts == 0;
    procset_free(&rest);
    return within;
}

void procset_write(const struct procset *set, struct wire_out *out)
{
    wire_put_u32(out, set->nparts);
    for (uint32_t i = 0; i < set->nparts; i++) {
        wire_put_str(out, set->parts[i].nspace);
        ranges_write(&set->parts[i].ranks, UINT32_MAX, out);
    }
}

bool procset_equal(const struct procset *a, const struct procset *b)
{
    struct wire_out x = {0}, y = {0};
    procset_write(a, &x);
    procset_write(b, &y);
    bool equal = x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
    wire_out_free(&x);
    wire_out_free(&y);
    return equal;
}

void procset_read(struct procset *set, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, 4 + 1 + 4 + 8);
    set->parts = n > 0 ? calloc(n, sizeof *set->parts) : NULL;
    if (n > 0 && set->parts == NULL)
        in->bad = true;
    const char *before = ""; /* no name is empty */
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct procset_part *part = &set->parts[set->nparts++];
        wire_get_str(in, part->nspace, sizeof part->nspace);
        ranges_read(&part->ranks, UINT32_MAX, in);
        if (part->ranks.n == 0 || strcmp(before, part->nspace) >= 0)
            in->bad = true;
        before = part->nspace;
    }
}

bool procset_next(const struct procset *set, struct procset_at *at)
{
    for (; at->part < set->nparts; at->part++, at->ranks = (struct ranges_at){0})
        if (ranges_next(&set->parts[at->part].ranks, &at->ranks)) {
            at->nspace = set->parts[at->part].nspace;
            at->rank = at->ranks.number;
            return true;
        }
    return false;
}

void procset_free(struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        ranges_free(&set->parts[i].ranks);
    free(set->parts);
    *set = (struct procset){0};
}
