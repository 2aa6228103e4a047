/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of a spawned job. */
#include "plugins/flux/shape.h"

#include <stdlib.h>
#include <string.h>

bool shape_next_host(const char **list, struct host *host)
{
    host->name = *list;
    host->len = strcspn(*list, ",");
    *list += host->len + (host->name[host->len] == ',');
    return host->len > 0;
}

static int compare_hosts(const void *a, const void *b)
{
    const struct host *one = a, *other = b;
    size_t len = one->len < other->len ? one->len : other->len;
    int rc = memcmp(one->name, other->name, len);
    return rc != 0 ? rc : (one->len > other->len) - (one->len < other->len);
}

bool shape_is_host(const struct host *a, const struct host *b)
{
    return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* @return all names, in their order, or NULL when out of memory */
static struct host *list_hosts(const char *hosts, uint32_t *n)
{
    uint32_t commas = 0;
    struct host *list;
    for (const char *p = hosts; *p != '\0'; p++)
        commas += *p == ',';
    list = calloc((size_t)commas + 2, sizeof(*list));
    *n = 0;
    while (list != NULL && shape_next_host(&hosts, &list[*n]))
        (*n)++;
    return list;
}

/* Flux gives each node as many tasks as the others, one after another or in turn. */
static int shape_of_hosts(const char *hosts, struct shape *shape, struct err *err)
{
    uint32_t n, runs = 0, same = 0;
    struct host *list = list_hosts(hosts, &n);
    int rc = 0;
    if (list == NULL)
        return err_set(err, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        runs += i == 0 || !shape_is_host(&list[i], &list[i - 1]);
    qsort(list, n, sizeof(*list), compare_hosts);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        same++;
        if (i + 1 < n && shape_is_host(&list[i], &list[i + 1]))
            continue;
        if (shape->per_node != 0 && same != shape->per_node)
            rc = err_set(err, "Flux starts as many processes on one node as on another, and the "
                              "nodes that are named have different numbers of them");
        shape->per_node = same;
        shape->nodes++;
        same = 0;
    }
    free(list);
    shape->cyclic = runs > shape->nodes;
    return rc != 0 || n > 0 ? rc : err_set(err, "no node is named");
}

int shape_find(const struct rm_spawn *what, uint32_t nnodes, struct shape *shape, struct err *err)
{
    *shape = (struct shape){0};
    if (what->hosts != NULL)
        return shape_of_hosts(what->hosts, shape, err);
    shape->cyclic = what->map == RM_MAP_NODES;
    if (what->per_node > 0)
        shape->nodes = (what->ntasks + what->per_node - 1) / what->per_node;
    else if (shape->cyclic)
        shape->nodes = nnodes < what->ntasks ? nnodes : what->ntasks;
    if (shape->nodes > 0)
        shape->per_node = (what->ntasks + shape->nodes - 1) / shape->nodes;
    return 0;
}
