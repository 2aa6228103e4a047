/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster-shell.so: what Flux's job shell loads.
 *
 * Every shell loads it; it does nothing unless -o pmi= names muster, alone or in a list. Then, on
 * each node of the job, in the shell's one thread and as the job's user:
 *
 *     shell.init     job → directory → muster-server → environment of each task; where no server
 *                    can be had, a door stands in its place (door.h)
 *     task.init      that environment into the task; before the first, the server is told where
 *                    all will be bound
 *     task.exec      the task, between fork and exec: it ends with the shell
 *     task.fork      the server is told of a task's process
 *     task.exit      and how it ended
 *     shell.finish   the server leaves, and nothing of it stays behind
 *     shell.exit     jobs that tasks have started have ended, too (children.h)
 *
 * A shell that ends without shell.finish, by exit(), does it then; of one that is killed the server
 * sees the end, has the job ended and removes its directory.
 */
#include "common/util/log.h"
#include "common/util/mark.h"
#include "plugins/flux/release.h"
#include "plugins/flux/shell_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MARK_VERSION;

#define EXPORT __attribute__((visibility("default")))
#define NAME "muster"

static struct session *session;

/* Messages of ours go where the shell's own do: the job's standard error. */
static void shell_sink(void *arg, enum log_level level, const char *text)
{
    int to = FLUX_SHELL_TRACE;
    (void)arg;
    if (level <= LOG_LEVEL_ERROR)
        to = FLUX_SHELL_ERROR;
    else if (level <= LOG_LEVEL_WARNING)
        to = FLUX_SHELL_WARN;
    else if (level <= LOG_LEVEL_INFO)
        to = FLUX_SHELL_DEBUG;
    flux_shell_log(NAME, to, NULL, 0, "%s", text);
}

/* Whether the list has that name, as "simple,muster" has ours. */
static bool names(const char *list, const char *name)
{
    size_t len;
    for (const char *p = list; p && *p != '\0'; p += len + (p[len] == ',')) {
        len = strcspn(p, ",");
        if (len == strlen(name) && strncmp(p, name, len) == 0)
            return true;
    }
    return false;
}

/* Nothing stays behind, also where the shell calls exit(). */
static void end_session(void)
{
    if (!session || session->owner != getpid())
        return;
    session_free(session);
    session = NULL;
}

/* Of -1 the user would read only that a plugin failed; so the shell is ended here, with the reason.
 */
static int on_init(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    flux_shell_t *shell = flux_plugin_get_shell(p);
    const char *pmi = NULL;
    struct err err = {0};
    (void)topic, (void)args, (void)data;
    /* Not earlier: the shell's initrc may set it. */
    if (flux_shell_getopt_unpack(shell, "pmi", "s", &pmi) < 0 || !names(pmi, NAME))
        return 0;           /* the shell itself complains of one that is no string */
    if (names(pmi, "pmix")) /* it would take the tasks' environment for itself, without a word */
        flux_shell_fatal(NULL, NULL, 0, 0, 1,
                         NAME ": -o pmi=%s asks for two PMIx servers, that of muster and that of "
                              "flux-pmix (pmix), and a task can have one: leave one of them out",
                         pmi);
    if (release_check(&err) != 0)
        flux_shell_fatal(NULL, NULL, 0, 0, 1, NAME ": %s", err.text);
    log_open(shell_sink, NULL, LOG_LEVEL_DEBUG, NULL);
    log_set_unit("job");
    session = session_new(shell);
    if (!session)
        return -1;
    atexit(end_session);
    if (session_open(session, shell, &err) < 0) {
        end_session();
        flux_shell_fatal(NULL, NULL, 0, 0, 1, NAME ": %s", err.text);
    }
    return 0;
}

/* Overwrites what the user set: with two PMIx servers in its environment a task reaches none. */
static int on_task_init(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    flux_shell_task_t *task = flux_shell_current_task(flux_plugin_get_shell(p));
    int slot;
    (void)topic, (void)args, (void)data;
    if (!session)
        return 0;
    if (session->launch.control < 0)
        return shell_door_tell(&session->door, session->job.boot.nspace, task);
    if (flux_shell_task_info_unpack(task, "{s:i}", "localid", &slot) < 0 || slot < 0 ||
        (uint32_t)slot >= session->env.nslots) {
        log_error("the shell does not tell which task it starts");
        return -1;
    }
    session_tell_bound(session);
    for (char **e = session->env.strings[slot]; e && *e; e++) {
        char *value = strchr(*e, '=');
        *value = '\0';
        int rc = flux_cmd_setenvf(flux_shell_task_cmd(task), 1, *e, "%s", value + 1);
        *value = '=';
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int on_task_exec(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    (void)p, (void)topic, (void)args, (void)data;
    if (session)
        launch_die_with(session->owner);
    return 0;
}

static int on_task_fork(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    int slot, pid;
    (void)topic, (void)args, (void)data;
    if (session && flux_shell_task_info_unpack(flux_shell_current_task(flux_plugin_get_shell(p)),
                                               "{s:i s:i}", "localid", &slot, "pid", &pid) == 0)
        session_tell(session, (uint32_t)slot | BOOT_TASK_STARTED, (uint32_t)pid, BOOT_PID_OWN);
    return 0;
}

static int on_task_exit(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    int slot, sig = 0, code = -1; /* BOOT_CODE_UNKNOWN */
    (void)topic, (void)args, (void)data;
    if (!session || flux_shell_task_info_unpack(flux_shell_current_task(flux_plugin_get_shell(p)),
                                                "{s:i s?i s?i}", "localid", &slot, "signaled", &sig,
                                                "exitcode", &code) < 0)
        return 0;
    session_tell(session, (uint32_t)slot, (uint32_t)sig, sig != 0 ? 0 : (uint32_t)code);
    if (++session->nended == boot_here(&session->job.boot)->ntasks)
        children_tasks_ended(session->children);
    return 0;
}

static int on_finish(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    (void)p, (void)topic, (void)args, (void)data;
    if (session)
        session_close(session, true);
    return 0;
}

static int on_exit_of_shell(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args,
                            void *data)
{
    (void)p, (void)topic, (void)args, (void)data;
    if (session) {
        children_close(session->children);
        parent_close(session->parent);
        session->children = NULL;
        session->parent = NULL;
    }
    return 0;
}

/** @thread the shell's only one, as everything here */
EXPORT int flux_plugin_init(flux_plugin_t *p)
{
    static const struct {
        const char *topic;
        flux_plugin_f call;
    } handlers[] = {{"shell.init", on_init},         {"task.init", on_task_init},
                    {"task.exec", on_task_exec},     {"task.fork", on_task_fork},
                    {"task.exit", on_task_exit},     {"shell.finish", on_finish},
                    {"shell.exit", on_exit_of_shell}};

    if (flux_plugin_set_name(p, NAME) < 0)
        return -1;
    session_note_cpus();
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (flux_plugin_add_handler(p, handlers[i].topic, handlers[i].call, NULL) < 0)
            return -1;
    }
    return 0;
}
