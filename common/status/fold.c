/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Groups of ranks are kept by the line that they have.
 */
#include "common/status/fold.h"

#include "common/status/fields.h"
#include "common/status/stack.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_TEXT = 72, NODES_SHOWN = 3 };

/* One rank of a group. */
struct member {
    int64_t rank;
    size_t node; /* index into the states */
};

struct group {
    char *line; /* owned */
    struct member *members;
    size_t n, cap;
};

struct fold {
    struct group *groups;
    size_t n;
    json_object *by_line; /* index of each */
};

/* @return what stands for a task, malloc()ed */
static char *line_of(json_object *task, bool full)
{
    const char *why = field_text(task, "no_stack"), *state = field_text(task, "state");
    char *line = stack_line(field_list(task, "stack"), full);
    if (line == NULL)
        line = why != NULL ? text_format("no stack: %s", why) : strdup(state != NULL ? state : "?");
    if (line != NULL)
        log_mask(line);
    return line;
}

/* @param line taken over */
static struct group *group_of(struct fold *fold, char *line)
{
    json_object *index;
    if (json_object_object_get_ex(fold->by_line, line, &index)) {
        free(line);
        return &fold->groups[json_object_get_int64(index)];
    }
    struct group *more = realloc(fold->groups, (fold->n + 1) * sizeof *more);
    if (more == NULL) {
        free(line);
        return NULL;
    }
    fold->groups = more;
    more[fold->n] = (struct group){.line = line};
    json_object_object_add(fold->by_line, line, json_object_new_int64((int64_t)fold->n));
    return &more[fold->n++];
}

static void add(struct fold *fold, json_object *task, size_t node, bool full)
{
    json_object *rank = field(task, "rank", json_type_int);
    char *line = rank != NULL ? line_of(task, full) : NULL;
    struct group *group = line != NULL ? group_of(fold, line) : NULL;
    if (group == NULL)
        return;
    if (group->n == group->cap) {
        size_t cap = group->cap == 0 ? 8 : 2 * group->cap;
        struct member *more = realloc(group->members, cap * sizeof *more);
        if (more == NULL)
            return;
        group->members = more;
        group->cap = cap;
    }
    group->members[group->n++] = (struct member){json_object_get_int64(rank), node};
}

static int by_rank(const void *a, const void *b)
{
    int64_t one = ((const struct member *)a)->rank, two = ((const struct member *)b)->rank;
    return (one > two) - (one < two);
}

static int by_size(const void *a, const void *b)
{
    const struct group *one = a, *two = b;
    return one->n != two->n ? (one->n < two->n) - (one->n > two->n)
                            : by_rank(one->members, two->members);
}

/* "0-3,5" of members that are sorted. */
static void put_ranks(const struct group *group, char *text, size_t cap)
{
    text[0] = '\0';
    for (size_t i = 0, end; i < group->n; i = end) {
        char range[64];
        const struct member *m = group->members;
        for (end = i + 1; end < group->n && m[end].rank - m[end - 1].rank <= 1; end++)
            ;
        int len = snprintf(range, sizeof range, "%s%" PRId64, i > 0 ? "," : "", m[i].rank);
        if (m[end - 1].rank != m[i].rank)
            snprintf(range + len, sizeof range - (size_t)len, "-%" PRId64, m[end - 1].rank);
        if (!text_fit(text, cap, range))
            return;
    }
}

/* Names of nodes, or how many they are. */
static void put_nodes(FILE *out, const struct group *group, json_object *nodes)
{
    size_t seen[NODES_SHOWN], n = 0, last = SIZE_MAX;
    bool *known = calloc(field_length(nodes), sizeof *known);
    for (size_t i = 0; i < group->n && known != NULL; i++) {
        last = group->members[i].node;
        if (known[last])
            continue;
        known[last] = true;
        if (n < NODES_SHOWN)
            seen[n] = last;
        n++;
    }
    free(known);
    if (n > NODES_SHOWN)
        fprintf(out, " on %zu nodes", n);
    for (size_t i = 0; i < n && n <= NODES_SHOWN; i++) {
        const char *name = field_text(field_at(nodes, seen[i]), "node");
        char *copy = strdup(name != NULL ? name : "?");
        if (copy != NULL)
            log_mask(copy);
        fprintf(out, "%s%s", i == 0 ? " on " : ",", copy != NULL ? copy : "?");
        free(copy);
    }
}

static void write_group(FILE *out, const struct group *group, json_object *nodes, int width)
{
    char ranks[RANKS_TEXT];
    put_ranks(group, ranks, sizeof ranks);
    fprintf(out, "%*zu rank%s  %s  (%s", width, group->n, group->n == 1 ? " " : "s", group->line,
            ranks);
    put_nodes(out, group, nodes);
    fprintf(out, ")\n");
}

void fold_write(FILE *out, json_object *nodes, bool full)
{
    struct fold fold = {.by_line = json_object_new_object()};
    for (size_t i = 0; i < field_length(nodes); i++) {
        json_object *tasks = field_list(field_at(nodes, i), "tasks");
        for (size_t k = 0; k < field_length(tasks); k++)
            add(&fold, field_at(tasks, k), i, full);
    }
    size_t groups = 0;
    for (size_t i = 0; i < fold.n; i++) /* without memory for its first member, one is empty */
        if (fold.groups[i].n > 0) {
            qsort(fold.groups[i].members, fold.groups[i].n, sizeof(struct member), by_rank);
            fold.groups[groups++] = fold.groups[i];
        } else {
            free(fold.groups[i].line);
        }
    if (groups > 0)
        qsort(fold.groups, groups, sizeof *fold.groups, by_size);
    int width = groups > 0 ? snprintf(NULL, 0, "%zu", fold.groups[0].n) : 0;
    for (size_t i = 0; i < groups; i++) {
        write_group(out, &fold.groups[i], nodes, width);
        free(fold.groups[i].line);
        free(fold.groups[i].members);
    }
    free(fold.groups);
    json_object_put(fold.by_line);
}
