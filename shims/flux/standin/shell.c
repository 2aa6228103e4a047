/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The job shell: one process for each node, the broker's child, with muster-shell.so in it.
 */
#include "shims/flux/standin/shell.h"

#include "plugins/flux/jobid.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct flux_shell the_shell;

int shell_call(const char *topic, struct shell_task *task)
{
    struct flux_plugin *plugin = &the_shell.plugin;
    the_shell.current = task;
    for (unsigned i = 0; i < plugin->n; i++)
        if (strcmp(plugin->handlers[i].topic, topic) == 0)
            return plugin->handlers[i].call(plugin, topic, NULL, plugin->handlers[i].arg);
    return 0;
}

/* ---- what the shell knows ---- */

static struct json_object *describe_node(const struct standin_node *node, uint32_t index)
{
    struct json_object *json = json_object_new_object(), *resources = json_object_new_object();
    char *ids = NULL;
    size_t len;
    FILE *out = open_memstream(&ids, &len);
    if (!json || !resources || !out)
        _exit(ENOMEM);
    for (uint32_t i = 0; i < node->ntasks; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", node->ranks[i]);
    fclose(out);
    json_object_object_add(json, "name", json_object_new_string(node->name));
    json_object_object_add(json, "broker_rank", json_object_new_int((int)index));
    json_object_object_add(json, "ntasks", json_object_new_int(node->ntasks));
    json_object_object_add(json, "taskids", json_object_new_string(ids));
    json_object_object_add(resources, "ncores",
                           json_object_new_int((int)sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_object_add(json, "resources", resources);
    free(ids);
    return json;
}

/* As much of a jobspec as the plugin reads. */
static struct json_object *describe_spec(char *const *argv)
{
    struct json_object *spec = json_object_new_object(), *tasks = json_object_new_array();
    struct json_object *task = json_object_new_object(), *command = json_object_new_array();
    if (!spec || !tasks || !task || !command)
        _exit(ENOMEM);
    for (; *argv; argv++)
        json_object_array_add(command, json_object_new_string(*argv));
    json_object_object_add(task, "command", command);
    json_object_array_add(tasks, task);
    json_object_object_add(spec, "tasks", tasks);
    return spec;
}

/* As much of R as the plugin reads. */
static struct json_object *describe_resources(const struct standin_step *step)
{
    struct json_object *r = json_object_new_object(), *execution = json_object_new_object();
    if (!r || !execution)
        _exit(ENOMEM);
    json_object_object_add(execution, "expiration", json_object_new_double((double)step->end));
    json_object_object_add(r, "execution", execution);
    return r;
}

/* "muster.timeouts.fence=5" into {"timeouts": {"fence": 5}}: a value is JSON where it can be. */
static void add_option(struct json_object *options, const char *text)
{
    char *copy = strdup(text + strlen("muster.")), *key = copy, *value, *dot;
    struct json_object *in = options, *group;
    if (!copy)
        _exit(ENOMEM);
    value = strchr(copy, '=');
    *value++ = '\0';
    while ((dot = strchr(key, '.'))) {
        *dot = '\0';
        if (!json_object_object_get_ex(in, key, &group) ||
            !json_object_is_type(group, json_type_object)) {
            group = json_object_new_object();
            json_object_object_add(in, key, group);
        }
        in = group;
        key = dot + 1;
    }
    group = json_tokener_parse(value);
    json_object_object_add(in, key, group ? group : json_object_new_string(value));
    free(copy);
}

static struct json_object *describe_options(const struct run *run)
{
    struct json_object *options = run->noptions > 0 ? json_object_new_object() : NULL;
    for (unsigned i = 0; options && i < run->noptions; i++)
        add_option(options, run->options[i]);
    return options;
}

static void describe_job(struct flux_shell *shell)
{
    const struct standin_step *step = &shell->node.run->step;
    shell->info = json_object_new_object();
    shell->ranks = json_object_new_array();
    shell->pmi = json_object_new_string("muster");
    shell->muster = describe_options(shell->node.run);
    if (!shell->pmi || !shell->info || !shell->ranks)
        _exit(ENOMEM);
    json_object_object_add(shell->info, "jobid", json_object_new_int64(step->job));
    json_object_object_add(shell->info, "rank", json_object_new_int((int)shell->node.index));
    json_object_object_add(shell->info, "size", json_object_new_int((int)step->nnodes));
    json_object_object_add(shell->info, "ntasks", json_object_new_int((int)step->ntasks));
    json_object_object_add(shell->info, "jobspec",
                           describe_spec(shell->node.run->programs[0].argv));
    json_object_object_add(shell->info, "R", describe_resources(step));
    for (uint32_t n = 0; n < step->nnodes; n++)
        json_object_array_add(shell->ranks, describe_node(&step->nodes[n], n));
}

/* ---- tasks ---- */

static char **copy_env(char **env)
{
    size_t n = 0;
    char **copy;
    while (env[n])
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = strdup(env[i])))
            _exit(ENOMEM);
    if (!copy)
        _exit(ENOMEM);
    return copy;
}

static void free_env(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

static void set_env(struct flux_shell *shell, struct shell_task *task, const char *uri)
{
    const struct standin_step *step = &shell->node.run->step;
    char ***env = &task->cmd.env, id[JOBID_SIZE];
    jobid_write(step->job, id);
    *env = copy_env(shell->node.run->env);
    task_setenv(env, "FLUX_URI", "%s", uri);
    task_setenv(env, "FLUX_JOB_ID", "%s", id);
    task_setenv(env, "FLUX_JOB_SIZE", "%u", step->ntasks);
    task_setenv(env, "FLUX_JOB_NNODES", "%u", step->nnodes);
    task_setenv(env, "FLUX_JOB_TMPDIR", "%s", shell->tmpdir);
    task_setenv(env, "FLUX_TASK_RANK", "%u", task->rank);
    task_setenv(env, "FLUX_TASK_LOCAL_ID", "%u", task->slot);
    /* Not Flux's: where each node is a host, its name is the host's. */
    task_setenv(env, "MUSTERRUN_NODE", "%s", shell->node.here->name);
}

/* One after another, as Flux's shell does. @return 0, or -1 when the plugin refuses */
static int start_tasks(struct flux_shell *shell, const char *uri)
{
    for (uint32_t slot = 0; slot < shell->node.here->ntasks; slot++) {
        struct shell_task *task = &shell->tasks[slot];
        *task = (struct shell_task){.slot = slot, .rank = shell->node.here->ranks[slot]};
        set_env(shell, task, uri);
        if (shell_call("task.init", task) < 0) {
            say_error("the plugin refuses task %u", task->rank);
            return -1;
        }
        task->pid = node_fork(&shell->node, slot);
        if (task->pid == 0) {
            task_open(&shell->node, slot);
            if (shell_call("task.exec", task) < 0)
                _exit(1);
            shell->node.run->env = task->cmd.env;
            task_exec(shell->node.run, task->rank);
        }
        free_env(task->cmd.env);
        task->cmd.env = NULL;
        if (task->pid > 0)
            shell_call("task.fork", task);
    }
    return 0;
}

static void on_task_ended(struct node *node, uint32_t slot, int status)
{
    struct shell_task *task = &the_shell.tasks[slot];
    (void)node;
    task->ended = true;
    task->status = status;
    shell_call("task.exit", task);
}

/* ---- the loop ---- */

static void on_control(evutil_socket_t fd, short what, void *arg)
{
    struct event **control = arg;
    (void)fd;
    (void)what;
    node_control_ready(&the_shell.node);
    if (the_shell.node.control >= 0)
        return;
    event_free(*control);
    *control = NULL;
}

static void on_children(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    node_children_ready(&the_shell.node);
    if (the_shell.node.running == 0)
        event_base_loopbreak(arg);
}

static void serve(struct flux_shell *shell)
{
    struct event_base *base = standin_base(shell->h);
    struct event *control, *children;
    control = event_new(base, shell->node.control, EV_READ | EV_PERSIST, on_control, &control);
    children = event_new(base, shell->node.children, EV_READ | EV_PERSIST, on_children, base);
    if (!control || !children || event_add(control, NULL) < 0 || event_add(children, NULL) < 0)
        _exit(ENOMEM);
    if (shell->node.running > 0)
        event_base_dispatch(base);
    if (control)
        event_free(control);
    event_free(children);
}

static int load_plugin(struct flux_shell *shell, const char *path)
{
    void *file = dlopen(path, RTLD_NOW), *symbol;
    int (*init)(flux_plugin_t * p);

    if (!file || !(symbol = dlsym(file, "flux_plugin_init"))) {
        say_error("cannot load the plugin: %s", dlerror());
        return -1;
    }
    memcpy(&init, &symbol, sizeof(init));
    shell->plugin.shell = shell;
    if (init(&shell->plugin) == 0)
        return 0;
    say_error("%s does not start", path);
    return -1;
}

static int open_shell(struct flux_shell *shell, struct run *run, uint32_t rank, int control,
                      const char *uri)
{
    flux_error_t error;
    if (node_open(&shell->node, run, rank, control) < 0)
        return -1;
    shell->node.task_ended = on_task_ended;
    shell->tasks = calloc(shell->node.here->ntasks, sizeof(*shell->tasks));
    snprintf(shell->tmpdir, sizeof(shell->tmpdir), "%s/%s/tmp", run->step.dir,
             shell->node.here->name);
    shell->h = flux_open_ex(uri, 0, &error);
    if (!shell->tasks || !shell->h) {
        say_error("the shell cannot reach its broker: %s",
                  shell->tasks ? error.text : "out of memory");
        return -1;
    }
    describe_job(shell);
    return load_plugin(shell, run->plugin_path);
}

void shell_run(struct run *run, uint32_t rank, int control, const char *uri)
{
    struct flux_shell *shell = &the_shell;
    int status = 1;
    if (open_shell(shell, run, rank, control, uri) == 0 && shell_call("shell.init", NULL) == 0) {
        node_keep_children(&shell->node);
        status = start_tasks(shell, uri) < 0;
        if (status == 0)
            serve(shell);
        node_kill_strays(&shell->node);
    }
    shell_call("shell.finish", NULL);
    flux_close(shell->h);
    node_end(&shell->node, status);
}
