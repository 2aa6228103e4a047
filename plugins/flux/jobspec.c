/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobspec of a spawned job. What its processes run stands in its environment (plan.h), which is
 * that of this job otherwise, without what is of this job alone. */
#include "plugins/flux/jobspec.h"

#include "common/launch/boot.h"
#include "common/launch/plan.h"
#include "common/util/text.h"
#include "plugins/flux/shape.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of this job alone. */
static const char *const dropped_env[] = {
    "PMIX_",         "PMI_",        "FLUX_JOB_",      "FLUX_TASK_",   PLAN_ENV,
    PLAN_PARENT_ENV, PLAN_APPS_ENV, PLAN_CHANNEL_ENV, BOOT_PSETS_ENV, BOOT_DEBUG_ENV};
static const char *const dropped_options[] = {"input",        "output",       "taskmap",
                                              "pty",          "cpu-affinity", "gpu-affinity",
                                              "per-resource", "cpus-per-task"};

/* Objects that are made. What fails is left out, and the whole is not made. */
struct maker {
    const struct rm_spawn *what;
    struct shape shape;
    bool failed;
};

/* @param value taken over */
static void put(struct maker *m, json_t *object, const char *key, json_t *value)
{
    m->failed |= json_object_set_new(object, key, value) != 0;
}

/* @param text NULL: nothing is put */
static void put_text(struct maker *m, json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        put(m, object, key, json_string(text));
}

/* @param names of members that are not copied @param whole or what they begin with
 * @return what is left of @p from, which may be NULL */
static json_t *copy(struct maker *m, json_t *from, const char *const *names, size_t n, bool whole)
{
    json_t *to = json_object();
    for (void *i = json_object_iter(from); i != NULL; i = json_object_iter_next(from, i)) {
        const char *key = json_object_iter_key(i);
        size_t k = 0;
        while (k < n && strncmp(key, names[k], strlen(names[k]) + whole) != 0)
            k++;
        if (k == n)
            put(m, to, key, json_deep_copy(json_object_iter_value(i)));
    }
    return to;
}

static json_t *make_resources(const struct maker *m)
{
    uint32_t nodes = m->shape.nodes;
    json_t *slot = json_pack("{s:s s:i s:s s:[{s:s s:i}]}", "type", "slot", "count",
                             nodes > 0 ? m->shape.per_node : m->what->ntasks, "label", "task",
                             "with", "type", "core", "count", 1);
    return nodes == 0 ? slot
                      : json_pack("{s:s s:i s:[o]}", "type", "node", "count", nodes, "with", slot);
}

static json_t *make_tasks(const struct maker *m)
{
    bool uneven = m->shape.nodes > 0 && m->shape.nodes * m->shape.per_node != m->what->ntasks;
    return json_pack("{s:[s] s:s s:{s:i}}", "command", MUSTER_EXEC_PATH, "slot", "task", "count",
                     uneven ? "total" : "per_slot", uneven ? m->what->ntasks : 1);
}

static json_t *make_env(struct maker *m, json_t *own, const char *channel)
{
    const struct rm_spawn *what = m->what;
    json_t *env = copy(m, own, dropped_env, sizeof(dropped_env) / sizeof(*dropped_env), false);
    char text[300];
    for (uint32_t i = 0; i < what->nplan; i++) {
        snprintf(text, sizeof(text), PLAN_ENV "%u", i);
        put_text(m, env, text, what->plan[i]);
    }
    snprintf(text, sizeof(text), "%u %s", what->rank, what->parent);
    put_text(m, env, PLAN_PARENT_ENV, text);
    put_text(m, env, PLAN_APPS_ENV, what->apps);
    put_text(m, env, BOOT_PSETS_ENV, what->psets);
    put_text(m, env, BOOT_DEBUG_ENV, what->debug);
    put_text(m, env, PLAN_CHANNEL_ENV, channel);
    return env;
}

static void put_file(struct maker *m, json_t *output, const char *stream, const char *ending)
{
    char *path = text_format("%s.{{taskid}}%s", m->what->output, ending);
    put(m, output, stream,
        path != NULL ? json_pack("{s:s s:s}", "type", "file", "path", path) : NULL);
    free(path);
}

static json_t *make_output(struct maker *m)
{
    json_t *output = json_object();
    put_file(m, output, "stdout", m->what->merge ? "" : ".out");
    if (!m->what->merge)
        put_file(m, output, "stderr", ".err");
    return output;
}

static json_t *make_options(struct maker *m, json_t *own)
{
    enum rm_bind bind = m->what->bind;
    json_t *pmi = NULL, *muster = NULL,
           *options = copy(m, own, dropped_options,
                           sizeof(dropped_options) / sizeof(*dropped_options), true);
    /* It may be of the shell's initrc, where the jobspec does not have it. */
    if (json_unpack(options, "{s:o}", "pmi", &pmi) != 0)
        put_text(m, options, "pmi", "muster");
    if (json_unpack(options, "{s:o}", "muster", &muster) == 0)
        json_object_del(muster, "pset"); /* it names ranks of this job */
    put_text(m, options, "cpu-affinity",
             bind == RM_BIND_NONE                             ? "off"
             : bind == RM_BIND_CORE || bind == RM_BIND_THREAD ? "per-task"
                                                              : "on");
    if (m->shape.cyclic)
        put(m, options, "taskmap", json_pack("{s:s s:s}", "scheme", "cyclic", "value", ""));
    if (m->what->output != NULL)
        put(m, options, "output", make_output(m));
    /* No user attaches to the job to end its input. muster-exec brings what is pushed. */
    put(m, options, "input",
        json_pack("{s:{s:s s:s}}", "stdin", "type", "file", "path", "/dev/null"));
    return options;
}

static json_t *make_hostlist(struct maker *m)
{
    const char *p = m->what->hosts;
    struct host host, last = {0};
    json_t *list = json_array();
    for (; shape_next_host(&p, &host); last = host)
        if (!shape_is_host(&host, &last)) /* one that comes twice does no harm */
            m->failed |= json_array_append_new(list, json_stringn(host.name, host.len)) != 0;
    return list;
}

static json_t *make_system(struct maker *m, flux_shell_t *shell, const char *channel,
                           struct err *err)
{
    const char *cwd, *queue = NULL, *bank = NULL;
    double duration = 0;
    json_t *env = NULL, *options = NULL;
    if (flux_shell_info_unpack(shell, "{s:{s:{s:{s:s s?F s?s s?s s?o s?{s?o}}}}}", "jobspec",
                               "attributes", "system", "cwd", &cwd, "duration", &duration, "queue",
                               &queue, "bank", &bank, "environment", &env, "shell", "options",
                               &options) < 0) {
        err_set(err, "the shell does not tell of its job: %s", strerror(errno));
        return NULL;
    }
    json_t *system = json_pack("{s:f s:s s:{s:s} s:o s:{s:o}}", "duration", duration, "cwd", cwd,
                               "job", "name", "spawned", "environment", make_env(m, env, channel),
                               "shell", "options", make_options(m, options));
    put_text(m, system, "queue", queue);
    put_text(m, system, "bank", bank);
    if (m->what->hosts != NULL)
        put(m, system, "constraints", json_pack("{s:o}", "hostlist", make_hostlist(m)));
    return system;
}

char *jobspec_make(flux_shell_t *shell, const struct rm_spawn *what, const char *channel,
                   uint32_t nnodes, struct err *err)
{
    struct maker m = {.what = what};
    if (shape_find(what, nnodes, &m.shape, err) < 0)
        return NULL;
    json_t *system = make_system(&m, shell, channel, err);
    if (err->text[0] != '\0')
        return NULL;
    json_t *spec =
        json_pack("{s:i s:[o] s:[o] s:{s:o}}", "version", 1, "resources", make_resources(&m),
                  "tasks", make_tasks(&m), "attributes", "system", system);
    char *text = m.failed || spec == NULL ? NULL : json_dumps(spec, 0);
    if (spec != NULL)
        json_delete(spec);
    if (text == NULL)
        err_set(err, "a word or a name is not UTF-8, or memory has run out");
    return text;
}
