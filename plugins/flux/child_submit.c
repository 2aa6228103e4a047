/* SPDX-License-Identifier: BSD-3-Clause */
/* This job's jobspec is read, and a spawned job's made of it. */
#include "plugins/flux/child_submit.h"

#include "plugins/flux/jobspec.h"
#include "plugins/flux/json_text.h"
#include "shims/flux/shell_jobs_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct members {
    struct jobspec_member *list;
    size_t n;
    bool failed;
};

/* @param text taken over */
static void add(struct members *m, const char *key, char *text)
{
    struct jobspec_member *more = realloc(m->list, (m->n + 1) * sizeof(*more));
    if (more)
        m->list = more;
    if (!more || !text) {
        m->failed = true;
        free(text);
        return;
    }
    m->list[m->n++] = (struct jobspec_member){.key = key, .text = text};
}

static void free_members(struct members *m)
{
    for (size_t i = 0; i < m->n; i++)
        free((char *)(uintptr_t)m->list[i].text);
    free(m->list);
}

/* The settings of muster, but for process sets, which name ranks of this job. */
static char *own_options(json_t *options)
{
    char *text = NULL;
    size_t len;
    const char *sep = "";
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    fputc('{', out);
    for (void *i = json_object_iter(options); i; i = json_object_iter_next(options, i)) {
        char *value = json_dumps(json_object_iter_value(i), JSON_ENCODE_ANY);
        if (value && strcmp(json_object_iter_key(i), "pset") != 0) {
            fputs(sep, out);
            json_text(out, json_object_iter_key(i));
            fprintf(out, ":%s", value);
            sep = ",";
        }
        free(value);
    }
    fputc('}', out);
    fclose(out);
    return text;
}

/* @param object NULL: it has none */
static void take_members(struct members *m, json_t *object)
{
    if (!object)
        return;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        json_t *value = json_object_iter_value(i);
        add(m, key,
            strcmp(key, "muster") == 0 ? own_options(value) : json_dumps(value, JSON_ENCODE_ANY));
    }
}

char *child_jobspec(flux_shell_t *shell, const struct rm_spawn *what, const char *channel,
                    uint32_t nnodes, struct err *err)
{
    struct jobspec_parent parent = {.channel = channel, .nnodes = nnodes};
    struct members env = {0}, options = {0};
    json_t *variables = NULL, *of_shell = NULL;
    const char *pmi = NULL;
    char *text = NULL;
    if (flux_shell_info_unpack(shell, "{s:{s:{s:{s:s s?F s?s s?s s?o s?{s?o}}}}}", "jobspec",
                               "attributes", "system", "cwd", &parent.cwd, "duration",
                               &parent.duration, "queue", &parent.queue, "bank", &parent.bank,
                               "environment", &variables, "shell", "options", &of_shell) < 0) {
        err_set(err, "the shell does not tell of its job: %s", strerror(errno));
        return NULL;
    }
    take_members(&env, variables);
    take_members(&options, of_shell);
    /* It may be of the shell's initrc, where the jobspec does not have it. */
    for (size_t i = 0; i < options.n; i++)
        if (strcmp(options.list[i].key, "pmi") == 0)
            pmi = options.list[i].text;
    if (!pmi)
        add(&options, "pmi", strdup("\"muster\""));
    parent.env = env.list;
    parent.nenv = env.n;
    parent.options = options.list;
    parent.noptions = options.n;
    if (env.failed || options.failed)
        err_set(err, "out of memory");
    else
        text = jobspec_make(&parent, what, err);
    free_members(&env);
    free_members(&options);
    return text;
}
