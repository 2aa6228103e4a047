/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes layouts as text: lists of ranks and nodes, the layout of PMIX_ANL_MAP, and a set of
 * processors.
 */
#include "common/nspace/maps.h"

#include <stdio.h>
#include <stdlib.h>

char *map_ranks(const struct boot_node *node)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (uint32_t k = 0; k < node->ntasks; k++)
        fprintf(f, "%s%u", k > 0 ? "," : "", node->ranks[k]);
    fclose(f);
    return text;
}

char *map_nodes(const struct boot *boot, int64_t app)
{
    const char *before = "";
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (uint32_t i = 0; i < boot->nnodes; i++) {
        if (app != MAP_ALL_APPS && !boot_app_on(boot, (uint32_t)app, i))
            continue;
        fprintf(f, "%s%s", before, boot->nodes[i].name);
        before = ",";
    }
    fclose(f);
    return text;
}

char *map_cpus(const cpu_set_t *set, size_t size)
{
    char *text = NULL;
    size_t len, n = size * 8;
    const char *before = "";
    FILE *f = open_memstream(&text, &len);
    for (size_t cpu = 0, last; cpu < n; cpu = last + 1) {
        last = cpu;
        if (!CPU_ISSET_S(cpu, size, set))
            continue;
        while (last + 1 < n && CPU_ISSET_S(last + 1, size, set))
            last++;
        fprintf(f, last > cpu ? "%s%zu-%zu" : "%s%zu", before, cpu, last);
        before = ",";
    }
    fclose(f);
    return text;
}

/* count nodes from node on with ranks each, in the order of ranks */
struct triple {
    uint32_t node, count, ranks;
};

/* Ranks in order, cut where the node changes, then nodes in a row with as many ranks joined. */
static uint32_t cut(const struct nspace *ns, struct triple *t)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < ns->boot->ntasks;) {
        uint32_t node = ns->node_of[rank], ranks = 0;
        for (; rank < ns->boot->ntasks && ns->node_of[rank] == node; rank++)
            ranks++;
        if (n > 0 && t[n - 1].node + t[n - 1].count == node && t[n - 1].ranks == ranks)
            t[n - 1].count++;
        else
            t[n++] = (struct triple){node, 1, ranks};
    }
    return n;
}

static bool repeats(const struct triple *t, uint32_t n, uint32_t period)
{
    for (uint32_t i = period; i < n; i++)
        if (t[i].node != t[i - period].node || t[i].count != t[i - period].count ||
            t[i].ranks != t[i - period].ranks)
            return false;
    return true;
}

char *map_anl(const struct nspace *ns)
{
    struct triple *t = calloc(ns->boot->ntasks, sizeof *t);
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    uint32_t n = cut(ns, t), period = 1;
    while (!repeats(t, n, period))
        period++;
    fputs("(vector", f);
    for (uint32_t i = 0; i < period; i++)
        fprintf(f, ",(%u,%u,%u)", t[i].node, t[i].count, t[i].ranks);
    fputc(')', f);
    free(t);
    fclose(f);
    return text;
}
