/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lists as runs: what is appended goes on with the last run where it can.
 */
#include "common/tracker/values/proclist.h"

#include <stdlib.h>
#include <string.h>

/* @return the index of a name, which is added if need be; UINT32_MAX: it cannot be */
static uint32_t name_of(struct proclist *list, const char *nspace)
{
    size_t len = strlen(nspace);
    if (list->n > 0 && strcmp(list->names[list->runs[list->n - 1].name], nspace) == 0)
        return list->runs[list->n - 1].name;
    for (uint32_t i = 0; i < list->nnames; i++)
        if (strcmp(list->names[i], nspace) == 0)
            return i;
    char(*names)[PROCSET_NAME_MAX + 1] =
        len == 0 || len > PROCSET_NAME_MAX
            ? NULL
            : realloc(list->names, (list->nnames + 1) * sizeof *names);
    if (names == NULL)
        return UINT32_MAX;
    list->names = names;
    memcpy(names[list->nnames], nspace, len + 1);
    return list->nnames++;
}

/* Whether one more rank goes on with a run. */
static bool goes_on(const struct proclist_run *run, uint32_t name, uint32_t rank)
{
    bool up = run->first <= run->last && run->last < UINT32_MAX && rank == run->last + 1;
    bool down = run->first >= run->last && run->last > 0 && rank == run->last - 1;
    return run->name == name && (up || down);
}

int proclist_add(struct proclist *list, const char *nspace, uint32_t first, uint32_t last)
{
    uint32_t name = name_of(list, nspace);
    struct proclist_run *before = list->n > 0 ? &list->runs[list->n - 1] : NULL;
    if (name == UINT32_MAX)
        return -1;
    if (before != NULL && goes_on(before, name, first) &&
        (first == last || (last > first) == (first > before->last))) {
        before->last = last;
        return 0;
    }
    if (list->n == list->cap) {
        uint32_t cap = list->cap > 0 ? 2 * list->cap : 4;
        struct proclist_run *runs = realloc(list->runs, cap * sizeof *runs);
        if (runs == NULL)
            return -1;
        list->runs = runs;
        list->cap = cap;
    }
    list->runs[list->n++] = (struct proclist_run){name, first, last};
    return 0;
}

int proclist_add_set(struct proclist *list, const struct procset *set)
{
    int rc = 0;
    for (uint32_t i = 0; i < set->nparts; i++)
        for (uint32_t j = 0; j < set->parts[i].ranks.n && rc == 0; j++)
            rc = proclist_add(list, set->parts[i].nspace, set->parts[i].ranks.v[j].first,
                              set->parts[i].ranks.v[j].last);
    return rc;
}

int proclist_to_set(const struct proclist *list, struct procset *set)
{
    int rc = 0;
    for (uint32_t i = 0; i < list->n && rc == 0; i++) {
        const struct proclist_run *run = &list->runs[i];
        bool up = run->first <= run->last;
        rc = procset_add(set, list->names[run->name], up ? run->first : run->last,
                         up ? run->last : run->first);
    }
    procset_canonical(set);
    return rc;
}

static int add_one(struct procset *set, const char *nspace, uint32_t rank)
{
    int rc = procset_add(set, nspace, rank, rank);
    procset_canonical(set);
    return rc;
}

int proclist_add_list(struct proclist *list, const struct proclist *more)
{
    int rc = 0;
    for (uint32_t i = 0; i < more->n && rc == 0; i++) {
        const struct proclist_run *run = &more->runs[i];
        rc = proclist_add(list, more->names[run->name], run->first, run->last);
    }
    return rc;
}

int proclist_add_new(struct proclist *list, const struct proclist *more, struct procset *but)
{
    struct procset all = {0};
    int rc = proclist_to_set(more, &all);
    bool once = procset_size(&all) == proclist_size(more); /* then none need be noted one by one */
    for (struct proclist_at at = {0}; rc == 0 && proclist_next(more, &at);) {
        if (procset_has(but, at.nspace, at.rank))
            continue;
        rc = proclist_add(list, at.nspace, at.rank, at.rank);
        if (rc == 0 && !once)
            rc = add_one(but, at.nspace, at.rank);
    }
    if (rc == 0 && once)
        rc = procset_unite(but, &all);
    procset_free(&all);
    return rc;
}

static uint64_t length(const struct proclist_run *run)
{
    return run->first <= run->last ? (uint64_t)run->last - run->first + 1
                                   : (uint64_t)run->first - run->last + 1;
}

static uint32_t rank_of(const struct proclist_run *run, uint32_t offset)
{
    return run->first <= run->last ? run->first + offset : run->first - offset;
}

uint64_t proclist_size(const struct proclist *list)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < list->n; i++)
        n += length(&list->runs[i]);
    return n;
}

bool proclist_at(const struct proclist *list, uint64_t place, const char **nspace, uint32_t *rank)
{
    for (uint32_t i = 0; i < list->n; i++) {
        uint64_t n = length(&list->runs[i]);
        if (place < n) {
            *nspace = list->names[list->runs[i].name];
            *rank = rank_of(&list->runs[i], (uint32_t)place);
            return true;
        }
        place -= n;
    }
    return false;
}

bool proclist_next(const struct proclist *list, struct proclist_at *at)
{
    if (at->run == list->n)
        return false;
    const struct proclist_run *run = &list->runs[at->run];
    at->nspace = list->names[run->name];
    at->rank = rank_of(run, at->offset++);
    if (at->rank == run->last) {
        at->run++;
        at->offset = 0;
    }
    return true;
}

bool proclist_is_of(const struct proclist *list, const struct procset *set)
{
    struct procset own = {0};
    bool is = proclist_size(list) == procset_size(set) && proclist_to_set(list, &own) == 0 &&
              procset_equal(&own, set);
    procset_free(&own);
    return is;
}

int proclist_compare(const struct proclist *a, const struct proclist *b)
{
    struct proclist_at x = {0}, y = {0};
    for (;;) {
        bool more_a = proclist_next(a, &x), more_b = proclist_next(b, &y);
        if (!more_a || !more_b)
            return more_a - more_b;
        int differ = strcmp(x.nspace, y.nspace);
        if (differ != 0 || x.rank != y.rank)
            return differ != 0 ? differ : x.rank > y.rank ? 1 : -1;
    }
}

void proclist_write(const struct proclist *list, struct wire_out *out)
{
    wire_put_u32(out, list->nnames);
    for (uint32_t i = 0; i < list->nnames; i++)
        wire_put_str(out, list->names[i]);
    wire_put_u32(out, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        wire_put_u32(out, list->runs[i].name);
        wire_put_u32(out, list->runs[i].first);
        wire_put_u32(out, list->runs[i].last);
    }
}

void proclist_read(struct proclist *list, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, 4 + 1);
    list->names = n > 0 ? calloc(n, sizeof *list->names) : NULL;
    in->bad |= n > 0 && list->names == NULL;
    for (; list->nnames < n && !in->bad; list->nnames++) {
        wire_get_str(in, list->names[list->nnames], sizeof *list->names);
        in->bad |= list->names[list->nnames][0] == '\0';
    }
    n = wire_get_count(in, 4 + 4 + 4);
    list->runs = n > 0 ? calloc(n, sizeof *list->runs) : NULL;
    in->bad |= n > 0 && list->runs == NULL;
    list->cap = in->bad ? 0 : n;
    for (; list->n < list->cap && !in->bad; list->n++) {
        struct proclist_run *run = &list->runs[list->n];
        run->name = wire_get_u32(in);
        run->first = wire_get_u32(in);
        run->last = wire_get_u32(in);
        in->bad |= run->name >= list->nnames;
    }
    in->bad |= proclist_size(list) > PROCLIST_MAX;
    if (in->bad)
        list->n = 0;
}

void proclist_free(struct proclist *list)
{
    free(list->names);
    free(list->runs);
    *list = (struct proclist){0};
}
