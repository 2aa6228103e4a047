/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted, as tables and as JSON. */
#include "common/status/stats.h"

#include "common/status/fields.h"

#include <inttypes.h>
#include <string.h>

enum {
    WORST_MAX = 10, /* nodes that have a bar */
    USED_MAX = 8,   /* operations that are told apart */
    BAR = 30
};

const char *stats_time(uint64_t us, char *text)
{
    if (us < 10000)
        snprintf(text, 24, "%.2g ms", (double)us / 1000);
    else if (us < 1000000)
        snprintf(text, 24, "%.0f ms", (double)us / 1000);
    else if (us < 10000000)
        snprintf(text, 24, "%.1f s", (double)us / 1000000);
    else
        snprintf(text, 24, "%.0f s", (double)us / 1000000);
    return text;
}

static void write_times(FILE *out, const struct times *times)
{
    char median[24], p99[24], max[24];
    fprintf(out, " %9" PRIu64 "  %9s %9s %9s", times->count,
            stats_time(times_quantile(times, 0.5), median),
            stats_time(times_quantile(times, 0.99), p99), stats_time(times->max_us, max));
}

static void write_kinds(FILE *out, const struct stats *stats)
{
    fprintf(out, "%-12s %9s %9s  %9s %9s %9s  %s\n", "operation", "count", "calls", "median", "p99",
            "max", "latest");
    for (size_t i = 0; i < stats->nkinds; i++) {
        const struct stats_kind *k = &stats->kinds[i];
        const struct stats_named *latest = stats_latest(stats, k->kind, 0);
        fprintf(out, "%-12s %9" PRIu64, k->kind, k->decided);
        write_times(out, &k->waits);
        if (latest != NULL && k->decided > 0)
            fprintf(out, "  %s: last in %" PRIu64 " (%" PRIu64 " %%)", latest->name,
                    latest->times.count, 100 * latest->times.count / k->decided);
        fprintf(out, "\n");
    }
}

/* Operations of one kind by their participants, unless there is but one of each kind. */
static void write_used(FILE *out, const struct stats *stats)
{
    if (stats->nused <= stats->nkinds)
        return;
    fprintf(out, "\n%-32s %9s  %9s %9s %9s\n", "most used", "calls", "median", "p99", "max");
    for (size_t i = 0; i < stats->nused && i < USED_MAX; i++) {
        fprintf(out, "%-32s", stats->used[i].name);
        write_times(out, &stats->used[i].times);
        fprintf(out, "\n");
    }
}

static void write_worst(FILE *out, const struct stats *stats)
{
    uint64_t most = stats->nworst > 0 ? stats->worst[0].times.total_us : 0;
    if (stats->nworst == 0)
        return;
    fprintf(out, "\n%-16s %9s  %9s %9s %9s %9s\n", "last", "times", "median", "p99", "max",
            "in all");
    for (size_t i = 0; i < stats->nworst && i < WORST_MAX; i++) {
        const struct stats_named *node = &stats->worst[i];
        uint64_t bar = most > 0 ? BAR * node->times.total_us / most : 0;
        char all[24];
        fprintf(out, "%-16s", node->name);
        write_times(out, &node->times);
        fprintf(out, " %9s ", stats_time(node->times.total_us, all));
        while (bar-- > 0)
            fputc('#', out);
        fprintf(out, "\n");
    }
    if (stats->nworst > WORST_MAX)
        fprintf(out, "and %zu nodes that were less late in all\n", stats->nworst - WORST_MAX);
}

void stats_write(FILE *out, const struct stats *stats, const char *owner)
{
    const char *unit = strcmp(stats->unit, "job") == 0 ? "job" : "step";
    fprintf(out, "%s %s of %s: %u of %u nodes %s %.0f s\n\n", unit, stats->step, owner,
            stats->nodes, stats->nodes + stats->silent,
            stats->ended ? "have counted, ended after" : "answer, up", stats->uptime);
    if (stats->nkinds == 0) {
        fprintf(out, "no operation has ended%s\n", stats->ended ? "" : " yet");
        return;
    }
    write_kinds(out, stats);
    write_used(out, stats);
    write_worst(out, stats);
}

/* ---- JSON ---- */

static json_object *json_times(const struct times *times)
{
    json_object *o = json_object_new_object();
    field_put_number(o, "count", times->count);
    field_put_number(o, "total_us", times->total_us);
    field_put_number(o, "median_us", times_quantile(times, 0.5));
    field_put_number(o, "p99_us", times_quantile(times, 0.99));
    field_put_number(o, "max_us", times->max_us);
    return o;
}

/* @param name the member that says whose they are @param kind of these alone; NULL: of all */
static json_object *json_list(const struct stats_named *list, size_t n, const char *name,
                              const char *kind)
{
    json_object *array = json_object_new_array();
    for (size_t i = 0; i < n; i++) {
        if (kind != NULL && strcmp(list[i].kind, kind) != 0)
            continue;
        json_object *o = json_times(&list[i].times);
        field_put_text(o, name, list[i].name);
        json_object_array_add(array, o);
    }
    return array;
}

json_object *stats_json(const struct stats *stats, const char *owner)
{
    json_object *o = json_object_new_object(), *kinds = json_object_new_array();
    field_put_text(o, "step", stats->step);
    field_put_text(o, "unit", strcmp(stats->unit, "job") == 0 ? "job" : "step");
    field_put_text(o, "user", owner);
    field_put_number(o, "nodes", stats->nodes);
    field_put_number(o, "silent_nodes", stats->silent);
    json_object_object_add(o, "ended", json_object_new_boolean(stats->ended));
    json_object_object_add(o, "uptime_seconds", json_object_new_double(stats->uptime));
    for (size_t i = 0; i < stats->nkinds; i++) {
        const struct stats_kind *k = &stats->kinds[i];
        json_object *one = field_add(kinds);
        field_put_text(one, "kind", k->kind);
        field_put_number(one, "operations", k->decided);
        json_object_object_add(one, "waits", json_times(&k->waits));
        json_object_object_add(one, "last", json_list(stats->last, stats->nlast, "node", k->kind));
    }
    json_object_object_add(o, "kinds", kinds);
    json_object_object_add(o, "most_used", json_list(stats->used, stats->nused, "operation", NULL));
    json_object_object_add(o, "last", json_list(stats->worst, stats->nworst, "node", NULL));
    return o;
}
