/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the job shell gives its plugins: the functions of shell_abi.h that are not libflux-core's.
 * Those of jansson take what is json-c's here.
 * musterrun exports them.
 */
#include "shims/flux/standin/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- the plugin ---- */

int flux_plugin_set_name(flux_plugin_t *p, const char *name)
{
    snprintf(p->name, sizeof(p->name), "%s", name);
    return 0;
}

int flux_plugin_add_handler(flux_plugin_t *p, const char *topic, flux_plugin_f cb, void *arg)
{
    if (p->n == HANDLERS_MAX || strlen(topic) >= sizeof(p->handlers[0].topic)) {
        errno = ENOSPC;
        return -1;
    }
    strcpy(p->handlers[p->n].topic, topic);
    p->handlers[p->n].call = cb;
    p->handlers[p->n++].arg = arg;
    return 0;
}

flux_shell_t *flux_plugin_get_shell(flux_plugin_t *p)
{
    return p->shell;
}

/* ---- the shell and its job ---- */

flux_t *flux_shell_get_flux(flux_shell_t *shell)
{
    return shell->h;
}

/* The job was started with -o pmi=muster, and perhaps -o muster.KEY=VALUE.
 * @return 1: it has the option */
int flux_shell_getopt_unpack(flux_shell_t *shell, const char *name, const char *fmt, ...)
{
    va_list ap;
    struct json_object *option = strcmp(name, "pmi") == 0      ? shell->pmi
                                 : strcmp(name, "muster") == 0 ? shell->muster
                                                               : NULL;

    if (!option)
        return 0;
    va_start(ap, fmt);
    int rc = standin_vunpack(option, fmt, ap);
    va_end(ap);
    return rc < 0 ? -1 : 1;
}

int flux_shell_info_unpack(flux_shell_t *shell, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = standin_vunpack(shell->info, fmt, ap);
    va_end(ap);
    return rc;
}

int flux_shell_rank_info_unpack(flux_shell_t *shell, int shell_rank, const char *fmt, ...)
{
    va_list ap;
    if (shell_rank < 0 || (size_t)shell_rank >= json_object_array_length(shell->ranks)) {
        errno = EINVAL;
        return -1;
    }
    va_start(ap, fmt);
    int rc = standin_vunpack(json_object_array_get_idx(shell->ranks, (size_t)shell_rank), fmt, ap);
    va_end(ap);
    return rc;
}

const char *flux_shell_getenv(flux_shell_t *shell, const char *name)
{
    size_t len = strlen(name);
    if (strcmp(name, "FLUX_JOB_TMPDIR") == 0)
        return shell->tmpdir;
    for (char **e = shell->node.run->env; *e; e++)
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
            return *e + len + 1;
    return NULL;
}

void flux_shell_log(const char *component, int level, const char *file, int line, const char *fmt,
                    ...)
{
    char text[1024];
    va_list ap;
    (void)file;
    (void)line;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (level <= FLUX_SHELL_WARN)
        say_error("%s: %s", component, text);
    else if (level <= FLUX_SHELL_DEBUG)
        say_info("%s: %s", component, text);
    else
        say_debug("%s: %s", component, text);
}

void flux_shell_fatal(const char *component, const char *file, int line, int errnum, int exit_code,
                      const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    (void)component;
    (void)file;
    (void)line;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    say_error("%s%s%s", text, errnum != 0 ? ": " : "", errnum != 0 ? strerror(errnum) : "");
    node_end(&the_shell.node, exit_code);
}

/* ---- of jansson ---- */

size_t json_array_size(const json_t *array)
{
    return json_object_array_length((const struct json_object *)array);
}

json_t *json_array_get(const json_t *array, size_t index)
{
    return (json_t *)json_object_array_get_idx((const struct json_object *)array, index);
}

const char *json_string_value(const json_t *string)
{
    struct json_object *json = (struct json_object *)(uintptr_t)string;
    return json_object_is_type(json, json_type_string) ? json_object_get_string(json) : NULL;
}

/* ---- its tasks ---- */

flux_shell_task_t *flux_shell_current_task(flux_shell_t *shell)
{
    return shell->current;
}

int flux_shell_task_info_unpack(flux_shell_task_t *task, const char *fmt, ...)
{
    struct json_object *json = json_object_new_object();
    va_list ap;
    if (!json)
        return -1;
    json_object_put(the_shell.asked);
    the_shell.asked = json; /* what is unpacked may point into it */
    json_object_object_add(json, "localid", json_object_new_int((int)task->slot));
    json_object_object_add(json, "rank", json_object_new_int((int)task->rank));
    if (task->pid > 0)
        json_object_object_add(json, "pid", json_object_new_int(task->pid));
    if (task->ended && WIFSIGNALED(task->status))
        json_object_object_add(json, "signaled", json_object_new_int(WTERMSIG(task->status)));
    else if (task->ended)
        json_object_object_add(json, "exitcode", json_object_new_int(WEXITSTATUS(task->status)));
    va_start(ap, fmt);
    int rc = standin_vunpack(json, fmt, ap);
    va_end(ap);
    return rc;
}

flux_cmd_t *flux_shell_task_cmd(flux_shell_task_t *task)
{
    return &task->cmd;
}

int flux_cmd_setenvf(flux_cmd_t *cmd, int overwrite, const char *name, const char *fmt, ...)
{
    size_t len = strlen(name);
    char *value;
    va_list ap;
    for (char **e = cmd->env; !overwrite && *e; e++) {
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=') {
            errno = EEXIST;
            return -1;
        }
    }
    va_start(ap, fmt);
    int n = vasprintf(&value, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -1;
    task_setenv(&cmd->env, name, "%s", value);
    free(value);
    return 0;
}
