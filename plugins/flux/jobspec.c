/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobspec of a spawned job. What its processes run stands in its environment (plan.h), which is
 * that of the parent's otherwise, without what is of that job alone. */
#include "plugins/flux/jobspec.h"

#include "common/launch/boot.h"
#include "plugins/flux/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the parent's job alone. */
static const char *const dropped_env[] = {
    "PMIX_",         "PMI_",        "FLUX_JOB_",      "FLUX_TASK_",   PLAN_ENV,
    PLAN_PARENT_ENV, PLAN_APPS_ENV, PLAN_CHANNEL_ENV, BOOT_PSETS_ENV, BOOT_DEBUG_ENV};
static const char *const dropped_options[] = {"input",        "output",       "taskmap",
                                              "pty",          "cpu-affinity", "gpu-affinity",
                                              "per-resource", "cpus-per-task"};

/* How many nodes, and how many tasks on each; nodes 0: as Flux does it. */
struct shape {
    uint32_t nodes, per_node;
    bool cyclic;
};

static bool is_of(const char *name, const char *const *list, size_t n, bool whole)
{
    for (size_t i = 0; i < n; i++) {
        if (whole ? strcmp(name, list[i]) == 0 : strncmp(name, list[i], strlen(list[i])) == 0)
            return true;
    }
    return false;
}

/* ---- where ---- */

struct host {
    const char *name; /* in the list that was asked for: no NUL behind it */
    size_t len;
};

/* The next name of a list. @return whether there is one */
static bool next_host(const char **list, struct host *host)
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

static bool is_host(const struct host *a, const struct host *b)
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
    while (list != NULL && next_host(&hosts, &list[*n]))
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
        runs += i == 0 || !is_host(&list[i], &list[i - 1]);
    qsort(list, n, sizeof(*list), compare_hosts);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        same++;
        if (i + 1 < n && is_host(&list[i], &list[i + 1]))
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

static int find_shape(const struct jobspec_parent *parent, const struct rm_spawn *what,
                      struct shape *shape, struct err *err)
{
    *shape = (struct shape){0};
    if (what->hosts != NULL)
        return shape_of_hosts(what->hosts, shape, err);
    shape->cyclic = what->map == RM_MAP_NODES;
    if (what->per_node > 0)
        shape->nodes = (what->ntasks + what->per_node - 1) / what->per_node;
    else if (shape->cyclic)
        shape->nodes = parent->nnodes < what->ntasks ? parent->nnodes : what->ntasks;
    if (shape->nodes > 0)
        shape->per_node = (what->ntasks + shape->nodes - 1) / shape->nodes;
    return 0;
}

static void put_resources(FILE *out, const struct rm_spawn *what, const struct shape *shape)
{
    static const char slot[] = "{\"type\":\"slot\",\"count\":%u,\"label\":\"task\",\"with\":["
                               "{\"type\":\"core\",\"count\":1}]}";
    fputs("\"resources\":[", out);
    if (shape->nodes > 0)
        fprintf(out, "{\"type\":\"node\",\"count\":%u,\"with\":[", shape->nodes);
    fprintf(out, slot, shape->nodes > 0 ? shape->per_node : what->ntasks);
    fputs(shape->nodes > 0 ? "]}]," : "],", out);
}

static void put_task(FILE *out, const struct rm_spawn *what, const struct shape *shape)
{
    fputs("\"tasks\":[{\"command\":[", out);
    json_text(out, MUSTER_EXEC_PATH);
    if (shape->nodes > 0 && shape->nodes * shape->per_node != what->ntasks)
        fprintf(out, "],\"slot\":\"task\",\"count\":{\"total\":%u}}],", what->ntasks);
    else
        fputs("],\"slot\":\"task\",\"count\":{\"per_slot\":1}}],", out);
}

/* ---- with what ---- */

static void put_variable(FILE *out, bool *first, const char *name, const char *value)
{
    fputs(*first ? "" : ",", out);
    *first = false;
    json_text(out, name);
    fputc(':', out);
    json_text(out, value);
}

static void put_env(FILE *out, const struct jobspec_parent *parent, const struct rm_spawn *what)
{
    char text[300];
    bool first = true;
    fputs("\"environment\":{", out);
    for (size_t i = 0; i < parent->nenv; i++) {
        if (is_of(parent->env[i].key, dropped_env, sizeof(dropped_env) / sizeof(*dropped_env),
                  false))
            continue;
        fputs(first ? "" : ",", out);
        first = false;
        json_text(out, parent->env[i].key);
        fprintf(out, ":%s", parent->env[i].text);
    }
    for (uint32_t i = 0; i < what->nplan; i++) {
        snprintf(text, sizeof(text), PLAN_ENV "%u", i);
        put_variable(out, &first, text, what->plan[i]);
    }
    snprintf(text, sizeof(text), "%u %s", what->rank, what->parent);
    put_variable(out, &first, PLAN_PARENT_ENV, text);
    put_variable(out, &first, PLAN_APPS_ENV, what->apps);
    if (what->psets != NULL)
        put_variable(out, &first, BOOT_PSETS_ENV, what->psets);
    if (what->debug != NULL)
        put_variable(out, &first, BOOT_DEBUG_ENV, what->debug);
    put_variable(out, &first, PLAN_CHANNEL_ENV, parent->channel);
    fputs("},", out);
}

static void put_output(FILE *out, const struct rm_spawn *what)
{
    static const char *const streams[] = {"stdout", "stderr"};
    static const char *const endings[] = {".out", ".err"};
    fputs(",\"output\":{", out);
    for (int i = 0; i < (what->merge ? 1 : 2); i++) {
        char *path = NULL;
        if (asprintf(&path, "%s.{{taskid}}%s", what->output, what->merge ? "" : endings[i]) < 0)
            return; /* what is cut is refused */
        fprintf(out, "%s\"%s\":{\"type\":\"file\",\"path\":", i > 0 ? "," : "", streams[i]);
        json_text(out, path);
        fputc('}', out);
        free(path);
    }
    fputc('}', out);
}

static void put_options(FILE *out, const struct jobspec_parent *parent, const struct rm_spawn *what,
                        const struct shape *shape)
{
    const char *sep = "";
    fputs("\"shell\":{\"options\":{", out);
    for (size_t i = 0; i < parent->noptions; i++) {
        if (is_of(parent->options[i].key, dropped_options,
                  sizeof(dropped_options) / sizeof(*dropped_options), true))
            continue;
        fputs(sep, out);
        json_text(out, parent->options[i].key);
        fprintf(out, ":%s", parent->options[i].text);
        sep = ",";
    }
    fprintf(out, "%s\"cpu-affinity\":\"%s\"", sep,
            what->bind == RM_BIND_NONE                                   ? "off"
            : what->bind == RM_BIND_CORE || what->bind == RM_BIND_THREAD ? "per-task"
                                                                         : "on");
    if (shape->cyclic)
        fputs(",\"taskmap\":{\"scheme\":\"cyclic\",\"value\":\"\"}", out);
    if (what->output != NULL)
        put_output(out, what);
    /* No user attaches to the job to end its input. muster-exec brings what is pushed. */
    fputs(",\"input\":{\"stdin\":{\"type\":\"file\",\"path\":\"/dev/null\"}}}}", out);
}

static void put_constraints(FILE *out, const struct rm_spawn *what)
{
    const char *p = what->hosts;
    struct host host, last = {0};
    fputs("\"constraints\":{\"hostlist\":[", out);
    for (; next_host(&p, &host); last = host) {
        if (is_host(&host, &last))
            continue;
        char *text = strndup(host.name, host.len);
        if (text == NULL)
            return; /* what is cut is refused */
        fputs(last.len > 0 ? "," : "", out);
        json_text(out, text); /* one that comes twice does no harm */
        free(text);
    }
    fputs("]},", out);
}

static void put_system(FILE *out, const struct jobspec_parent *parent, const struct rm_spawn *what,
                       const struct shape *shape)
{
    fprintf(out, "\"attributes\":{\"system\":{\"duration\":%.3f,\"cwd\":", parent->duration);
    json_text(out, parent->cwd);
    fputs(",\"job\":{\"name\":\"spawned\"},", out);
    if (parent->queue != NULL) {
        fputs("\"queue\":", out);
        json_text(out, parent->queue);
        fputc(',', out);
    }
    if (parent->bank != NULL) {
        fputs("\"bank\":", out);
        json_text(out, parent->bank);
        fputc(',', out);
    }
    if (what->hosts != NULL)
        put_constraints(out, what);
    put_env(out, parent, what);
    put_options(out, parent, what, shape);
    fputs("}}", out);
}

char *jobspec_make(const struct jobspec_parent *parent, const struct rm_spawn *what,
                   struct err *err)
{
    struct shape shape;
    char *text = NULL;
    size_t len;
    if (find_shape(parent, what, &shape, err) < 0)
        return NULL;
    FILE *out = open_memstream(&text, &len);
    if (out != NULL) {
        fputs("{\"version\":1,", out);
        put_resources(out, what, &shape);
        put_task(out, what, &shape);
        put_system(out, parent, what, &shape);
        fputc('}', out);
        if (fclose(out) == 0)
            return text;
    }
    free(text);
    err_set(err, "out of memory");
    return NULL;
}
