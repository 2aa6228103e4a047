/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Builds sets in canonical order, unites, subtracts and compares them, and writes and reads their
 * bytes.
 */
#include "common/tracker/procset.h"

#include <stdlib.h>
#include <string.h>

static struct procset_part *part_of(struct procset *set, const char *nspace)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        if (strcmp(set->parts[i].nspace, nspace) == 0)
            return &set->parts[i];
    size_t len = strlen(nspace);
    if (len == 0 || len > PROCSET_NAME_MAX)
        return NULL;
    struct procset_part *parts = realloc(set->parts, (set->nparts + 1) * sizeof *parts);
    if (parts == NULL)
        return NULL;
    set->parts = parts;
    struct procset_part *part = &parts[set->nparts++];
    *part = (struct procset_part){0};
    memcpy(part->nspace, nspace, len + 1);
    return part;
}

static int push(struct procset_part *part, uint32_t first, uint32_t last)
{
    /* Callers mostly add ranks in order: grow the last range instead of the array. */
    if (part->nranges > 0) {
        struct procset_range *end = &part->ranges[part->nranges - 1];
        if (first == end->last + 1 && first != 0) {
            end->last = last;
            return 0;
        }
    }
    if (part->nranges == part->cap) {
        uint32_t cap = part->cap ? 2 * part->cap : 4;
        struct procset_range *ranges = realloc(part->ranges, cap * sizeof *ranges);
        if (ranges == NULL)
            return -1;
        part->ranges = ranges;
        part->cap = cap;
    }
    part->ranges[part->nranges++] = (struct procset_range){first, last};
    return 0;
}

int procset_add(struct procset *set, const char *nspace, uint32_t first, uint32_t last)
{
    struct procset_part *part = first > last ? NULL : part_of(set, nspace);
    return part == NULL ? -1 : push(part, first, last);
}

static int by_first(const void *a, const void *b)
{
    const struct procset_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
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
    for (uint32_t i = 0; i < set->nparts; i++) {
        struct procset_part *part = &set->parts[i];
        if (part->nranges == 0)
            continue; /* memory ran out for its first one */
        qsort(part->ranges, part->nranges, sizeof *part->ranges, by_first);
        uint32_t n = 0;
        for (uint32_t j = 1; j < part->nranges; j++) {
            struct procset_range *end = &part->ranges[n], *next = &part->ranges[j];
            if (next->first <= end->last || next->first == end->last + 1) {
                if (next->last > end->last)
                    end->last = next->last;
            } else {
                part->ranges[++n] = *next;
            }
        }
        part->nranges = n + 1;
    }
}

uint64_t procset_size(const struct procset *set)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < set->nparts; i++)
        for (uint32_t j = 0; j < set->parts[i].nranges; j++)
            n += (uint64_t)set->parts[i].ranges[j].last - set->parts[i].ranges[j].first + 1;
    return n;
}

static bool has_rank(const struct procset_part *part, uint32_t rank)
{
    uint32_t low = 0, high = part->nranges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rank > part->ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->nranges && rank >= part->ranges[low].first;
}

bool procset_has(const struct procset *set, const char *nspace, uint32_t rank)
{
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct procset_part *part = &set->parts[i];
        if (strcmp(part->nspace, nspace) == 0)
            return has_rank(part, rank);
    }
    return false;
}

int procset_unite(struct procset *set, const struct procset *more)
{
    int rc = 0;
    for (uint32_t i = 0; i < more->nparts && rc == 0; i++) {
        const struct procset_part *part = &more->parts[i];
        for (uint32_t j = 0; j < part->nranges && rc == 0; j++)
            rc = procset_add(set, part->nspace, part->ranges[j].first, part->ranges[j].last);
    }
    procset_canonical(set);
    return rc;
}

/* What is left of first..last without the ranges of @p without. */
static int add_except(struct procset *set, const char *nspace, struct procset_range range,
                      const struct procset_part *without)
{
    uint64_t at = range.first;
    for (uint32_t i = 0; without != NULL && i < without->nranges && at <= range.last; i++) {
        const struct procset_range *hole = &without->ranges[i];
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
        const struct procset_part *part = &from->parts[i], *holes = NULL;
        for (uint32_t j = 0; j < without->nparts; j++)
            if (strcmp(without->parts[j].nspace, part->nspace) == 0)
                holes = &without->parts[j];
        for (uint32_t j = 0; j < part->nranges && rc == 0; j++)
            rc = add_except(set, part->nspace, part->ranges[j], holes);
    }
    procset_canonical(set);
    return rc;
}

void procset_write(const struct procset *set, struct wire_out *out)
{
    wire_put_u32(out, set->nparts);
    for (uint32_t i = 0; i < set->nparts; i++) {
        const struct procset_part *part = &set->parts[i];
        wire_put_str(out, part->nspace);
        wire_put_u32(out, part->nranges);
        for (uint32_t j = 0; j < part->nranges; j++) {
            wire_put_u32(out, part->ranges[j].first);
            wire_put_u32(out, part->ranges[j].last);
        }
    }
}

static bool read_part(struct procset_part *part, const char *before, struct wire_in *in)
{
    wire_get_str(in, part->nspace, sizeof part->nspace);
    uint32_t n = wire_get_count(in, 8);
    if (in->bad || n == 0 || part->nspace[0] == '\0' ||
        (before != NULL && strcmp(before, part->nspace) >= 0))
        return false;
    part->ranges = calloc(n, sizeof *part->ranges);
    if (part->ranges == NULL)
        return false;
    part->nranges = part->cap = n;
    for (uint32_t j = 0; j < n; j++) {
        struct procset_range *r = &part->ranges[j];
        r->first = wire_get_u32(in);
        r->last = wire_get_u32(in);
        if (r->first > r->last || (j > 0 && (uint64_t)r[-1].last + 1 >= r->first))
            return false;
    }
    return true;
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
    const char *before = NULL;
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        set->nparts = i + 1;
        if (!read_part(&set->parts[i], before, in))
            in->bad = true;
        before = set->parts[i].nspace;
    }
}

void procset_free(struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        free(set->parts[i].ranges);
    free(set->parts);
    *set = (struct procset){0};
}
