/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted, as OpenMetrics has it. Prometheus's older text format reads the same, so it has
 * no counters: these two have other names for one. */
#include "common/status/stats.h"

#include <inttypes.h>

enum { NODES_MAX = 16 /* late nodes of each kind: each is some thirty series */ };

static void write_value(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void write_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, ",%s=\"", name);
    write_value(out, value);
    fputc('"', out);
}

/* The name of a series, and its first labels. */
static void begin(FILE *out, const char *metric, const struct stats *stats, const char *owner,
                  const char *kind, const char *node)
{
    fprintf(out, "%s{step=\"", metric);
    write_value(out, stats->step);
    fputc('"', out);
    write_label(out, "user", owner);
    if (kind != NULL)
        write_label(out, "kind", kind);
    if (node != NULL)
        write_label(out, "node", node);
}

static void write_head(FILE *out, const char *metric, const char *type, const char *unit,
                       const char *help)
{
    fprintf(out, "# TYPE %s %s\n", metric, type);
    if (unit != NULL)
        fprintf(out, "# UNIT %s %s\n", metric, unit);
    fprintf(out, "# HELP %s %s\n", metric, help);
}

/* @param metric in seconds */
static void write_times(FILE *out, const char *metric, const struct stats *stats, const char *owner,
                        const char *kind, const char *node, const struct times *times)
{
    char name[64];
    uint64_t so_far = 0;
    snprintf(name, sizeof name, "%s_bucket", metric);
    for (unsigned i = 0; i + 1 < TIMES_BUCKETS; i++) {
        so_far += times->n[i];
        begin(out, name, stats, owner, kind, node);
        fprintf(out, ",le=\"%.6f\"} %" PRIu64 "\n", (double)(UINT64_C(2) << i) / 1e6, so_far);
    }
    so_far += times->n[TIMES_BUCKETS - 1];
    begin(out, name, stats, owner, kind, node);
    fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", so_far);
    snprintf(name, sizeof name, "%s_count", metric);
    begin(out, name, stats, owner, kind, node);
    fprintf(out, "} %" PRIu64 "\n", so_far);
    snprintf(name, sizeof name, "%s_sum", metric);
    begin(out, name, stats, owner, kind, node);
    fprintf(out, "} %.6f\n", (double)times->total_us / 1e6);
}

void stats_metrics(FILE *out, const struct stats *stats, const char *owner)
{
    write_head(out, "muster_nodes", "gauge", NULL, "Servers of the step, by whether they answer.");
    for (int silent = 0; silent < 2; silent++) {
        begin(out, "muster_nodes", stats, owner, NULL, NULL);
        fprintf(out, ",answer=\"%s\"} %u\n", silent ? "no" : "yes",
                silent ? stats->silent : stats->nodes);
    }
    write_head(out, "muster_operations", "gauge", NULL,
               "Operations that have ended well since the step began.");
    for (size_t i = 0; i < stats->nkinds; i++) {
        begin(out, "muster_operations", stats, owner, stats->kinds[i].kind, NULL);
        fprintf(out, "} %" PRIu64 "\n", stats->kinds[i].decided);
    }
    write_head(out, "muster_wait_seconds", "histogram", "seconds",
               "How long calls waited, of all nodes.");
    for (size_t i = 0; i < stats->nkinds; i++)
        write_times(out, "muster_wait_seconds", stats, owner, stats->kinds[i].kind, NULL,
                    &stats->kinds[i].waits);
    write_head(out, "muster_late_seconds", "histogram", "seconds",
               "How much later the node came that was last than the last but one.");
    for (size_t i = 0; i < stats->nkinds; i++) {
        const char *kind = stats->kinds[i].kind;
        const struct stats_named *node;
        for (size_t k = 0; k < NODES_MAX && (node = stats_latest(stats, kind, k)) != NULL; k++)
            write_times(out, "muster_late_seconds", stats, owner, kind, node->name, &node->times);
    }
    fputs("# EOF\n", out);
}
