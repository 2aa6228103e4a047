/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts together what servers have counted. A field that is missing or of another type counts as
 * absent, and no list grows without bound: the servers are their user's. */
#include "common/status/stats.h"

#include "common/status/fields.h"
#include "common/util/log.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void text(json_object *o, const char *key, char *buf, size_t cap)
{
    const char *value = field_text(o, key);
    snprintf(buf, cap, "%s", value != NULL ? value : "?");
    log_mask(buf);
}

static uint64_t number(json_object *o, const char *key)
{
    int64_t n = field_number(o, key, 0);
    return n > 0 && n < INT64_MAX / 65536 ? (uint64_t)n : 0;
}

static struct times times_of(json_object *o)
{
    struct times times = {.count = number(o, "count"),
                          .total_us = number(o, "total_us"),
                          .max_us = number(o, "max_us")};
    json_object *buckets = field_list(o, "buckets");
    for (size_t k = 0; k < field_length(buckets); k++) {
        json_object *bucket = field_at(buckets, k);
        uint64_t from = number(bucket, "from_us");
        unsigned i = 0;
        while (i + 1 < TIMES_BUCKETS && from >> (i + 1) != 0)
            i++;
        times.n[i] += number(bucket, "count");
        times.us[i] += number(bucket, "total_us");
    }
    return times;
}

static struct stats_kind *kind_of(struct stats *stats, const char *kind)
{
    for (size_t i = 0; i < stats->nkinds; i++)
        if (strcmp(stats->kinds[i].kind, kind) == 0)
            return &stats->kinds[i];
    if (stats->nkinds == STATS_KINDS_MAX)
        return NULL;
    struct stats_kind *k = &stats->kinds[stats->nkinds++];
    *k = (struct stats_kind){0};
    snprintf(k->kind, sizeof k->kind, "%s", kind);
    return k;
}

/* Adds times to the element of a list that has that name, kind and id. */
static void add_named(struct stats_named **list, size_t *n, size_t max,
                      const struct stats_named *one)
{
    struct stats_named *to = NULL;
    for (size_t i = 0; i < *n && to == NULL; i++)
        if (strcmp((*list)[i].name, one->name) == 0 && strcmp((*list)[i].kind, one->kind) == 0 &&
            strcmp((*list)[i].id, one->id) == 0)
            to = &(*list)[i];
    if (to != NULL) {
        times_merge(&to->times, &one->times);
        return;
    }
    if ((*n & (*n - 1)) == 0) { /* a power of two: it is full */
        struct stats_named *more =
            *n < max ? realloc(*list, (*n > 0 ? 2 * *n : 1) * sizeof *more) : NULL;
        if (more == NULL)
            return;
        *list = more;
    }
    (*list)[(*n)++] = *one;
}

void stats_add(struct stats *stats, json_object *state)
{
    json_object *counts = field(state, "collectives", json_type_object),
                *waits = field_list(counts, "waits"), *last = field_list(counts, "last"),
                *used = field_list(counts, "most_used"),
                *uptime = field(state, "uptime", json_type_double);
    double s = uptime != NULL ? json_object_get_double(uptime) : 0;
    uint64_t servers = number(state, "servers"); /* whose counts these are, when it is not one */
    if (stats->nodes == 0) {
        text(state, "step", stats->step, sizeof stats->step);
        text(state, "unit", stats->unit, sizeof stats->unit);
    }
    stats->nodes += servers > 0 && servers < INT_MAX ? (unsigned)servers : 1;
    if (s > stats->uptime && s < 1e12)
        stats->uptime = s;
    for (size_t i = 0; i < field_length(waits); i++) {
        json_object *o = field_at(waits, i);
        char kind[STATS_KIND_SIZE];
        struct times times = times_of(o);
        text(o, "kind", kind, sizeof kind);
        struct stats_kind *k = kind_of(stats, kind);
        if (k == NULL)
            continue;
        k->decided += number(o, "decided");
        times_merge(&k->waits, &times);
    }
    for (size_t i = 0; i < field_length(last); i++) {
        json_object *o = field_at(last, i);
        struct stats_named one = {.times = times_of(o)};
        text(o, "node", one.name, sizeof one.name);
        text(o, "kind", one.kind, sizeof one.kind);
        struct stats_kind *k = kind_of(stats, one.kind);
        if (k != NULL)
            times_merge(&k->late, &one.times);
        add_named(&stats->last, &stats->nlast, STATS_LAST_MAX, &one);
        one.kind[0] = '\0';
        add_named(&stats->worst, &stats->nworst, STATS_LAST_MAX, &one);
    }
    for (size_t i = 0; i < field_length(used); i++) {
        json_object *o = field_at(used, i);
        struct stats_named one = {.times = times_of(o)};
        text(o, "operation", one.name, sizeof one.name);
        text(o, "kind", one.kind, sizeof one.kind);
        text(o, "id", one.id, sizeof one.id);
        add_named(&stats->used, &stats->nused, STATS_USED_MAX, &one);
    }
}

int stats_read(struct stats *stats, json_object *answer)
{
    json_object *nodes = field_list(answer, "nodes"), *silent = field_list(answer, "silent");
    for (size_t i = 0; i < field_length(nodes); i++)
        stats_add(stats, field_at(nodes, i));
    stats->silent =
        (unsigned)field_length(silent) + (unsigned)(number(answer, "silent_servers") % INT_MAX);
    stats->ended = json_object_get_boolean(field(answer, "ended", json_type_boolean));
    stats_end(stats);
    return field_length(nodes) > 0 && silent != NULL ? 0 : -1;
}

static int by_total(const void *a, const void *b)
{
    const struct stats_named *x = a, *y = b;
    return x->times.total_us != y->times.total_us ? (x->times.total_us < y->times.total_us ? 1 : -1)
                                                  : strverscmp(x->name, y->name);
}

static int by_count(const void *a, const void *b)
{
    const struct stats_named *x = a, *y = b;
    return x->times.count != y->times.count ? (x->times.count < y->times.count ? 1 : -1)
                                            : strverscmp(x->name, y->name);
}

static void order(struct stats_named *list, size_t n, int (*by)(const void *, const void *))
{
    if (n > 1)
        qsort(list, n, sizeof *list, by);
}

void stats_end(struct stats *stats)
{
    order(stats->last, stats->nlast, by_total);
    order(stats->worst, stats->nworst, by_total);
    order(stats->used, stats->nused, by_count);
}

const struct stats_named *stats_latest(const struct stats *stats, const char *kind, size_t i)
{
    for (size_t k = 0; k < stats->nlast; k++)
        if (strcmp(stats->last[k].kind, kind) == 0 && i-- == 0)
            return &stats->last[k];
    return NULL;
}

void stats_free(struct stats *stats)
{
    free(stats->last);
    free(stats->worst);
    free(stats->used);
    *stats = (struct stats){0};
}
