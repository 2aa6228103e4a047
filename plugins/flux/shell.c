/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * muster-shell.so: what Flux's job shell loads.
 *
 * Every shell loads it; it does nothing unless -o pmi= names muster, alone or in a list. Then, on
 * each node of the job, in the shell's one thread and as the job's user:
 *
 *     shell.init     job → directory → muster-server → environment of each task; what is missing
 *                    ends the job with a sentence
 *     task.init      that environment into the task; before the first, the server is told where
 *                    all will be bound
 *     task.exec      the task, between fork and exec: it ends with the shell
 *     task.fork      the server is told of a task's process
 *     task.exit      and how it ended
 *     shell.finish   the server leaves, nothing stays behind
 *
 * A shell that ends without shell.finish, by exit(), does it then; of one that is killed the server
 * sees the end, has the job ended and removes its directory.
 */
#include "common/launch/handshake.h"
#include "common/launch/launch.h"
#include "common/launch/scratch.h"
#include "common/util/clock.h"
#include "common/util/log.h"
#include "common/util/mark.h"
#include "plugins/flux/job.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MARK_VERSION;

#define EXPORT __attribute__((visibility("default")))
#define NAME "muster"

enum {
    CPUS_BYTES = 2048, /* of a set of processors */
    BOUND_MS = 2000,   /* for the server to see where tasks are bound */
    LOST_STATUS = 137, /* of a job whose server is lost, as ending_of_host() has it */
};

/** The one job of this process. */
struct session {
    pid_t owner; /**< forked tasks have a copy of all this */
    flux_t *h;   /**< to the broker, the shell's */
    struct job job;
    struct identity user;
    struct scratch scratch;
    struct launch launch;
    struct task_env env;
    flux_watcher_t *control, *unsent, *relay; /**< NULL: not watched (any more) */
    bool told;                                /**< the server was told where the tasks are bound */
    bool bound_each; /**< the shell binds each task on its own, between fork and exec */
};

static struct session *session;

/* Where the shell might run before its own plugins bound it: PMIx's server is no task, and takes a
 * task that may run wherever it may itself for one that is not bound. */
static unsigned char cpus_before[CPUS_BYTES];

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

static void unwatch(flux_watcher_t **watcher)
{
    if (*watcher)
        flux_watcher_destroy(*watcher);
    *watcher = NULL;
}

/* flux_shell_raise() of Flux has no status. The job manager takes it as wait(2) has it; releases
 * before 0.84 ignore it. No answer is awaited, as the reactor has to go on. */
static void end_job(const struct session *s)
{
    const struct boot *boot = &s->job.boot;
    flux_future_t *f;
    char note[320];

    snprintf(note, sizeof(note), "muster-server of job %s died on node %s", boot->label,
             boot->nodes[boot->node].name);
    f = flux_rpc_pack(s->h, "job-manager.raise", FLUX_NODEID_ANY, FLUX_RPC_NORESPONSE,
                      "{s:I s:s s:i s:s s:i}", "id", (int64_t)s->job.id, "type", "exec", "severity",
                      0, "note", note, "wait_status", LOST_STATUS << 8);
    if (!f)
        log_error("job %s cannot be ended; end it with: flux cancel %s", boot->label, boot->label);
    flux_future_destroy(f);
}

static void server_died(struct session *s)
{
    const struct boot *boot = &s->job.boot;

    unwatch(&s->control);
    unwatch(&s->unsent);
    log_error(
        "muster-server of job %s died on node %s%s: ending the job, since its tasks would wait "
        "for it for ever",
        boot->label, boot->nodes[boot->node].name, s->launch.death);
    end_job(s);
}

static void on_control(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct session *s = arg;

    (void)r, (void)w, (void)events;
    if (launch_attend(&s->launch) == LAUNCH_DIED)
        server_died(s);
}

static void on_relay(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct session *s = arg;

    (void)r, (void)w, (void)events;
    relay_read(&s->launch.relay);
    if (s->launch.relay.fd < 0)
        unwatch(&s->relay);
}

static void on_unsent(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct session *s = arg;

    (void)r, (void)events;
    if (!launch_flush(&s->launch))
        flux_watcher_stop(w);
}

static int watch(struct session *s, flux_t *h, struct err *err)
{
    flux_reactor_t *r = flux_get_reactor(h);
    int control = s->launch.control;

    s->control = flux_fd_watcher_create(r, control, FLUX_POLLIN, on_control, s);
    s->unsent = flux_fd_watcher_create(r, control, FLUX_POLLOUT, on_unsent, s);
    s->relay = flux_fd_watcher_create(r, s->launch.relay.fd, FLUX_POLLIN, on_relay, s);
    if (!s->control || !s->unsent || !s->relay)
        return err_set(err, "the shell cannot watch muster-server");
    flux_watcher_start(s->control);
    flux_watcher_start(s->relay);
    return 0;
}

/* Nothing stays behind. A server that lives is asked to leave first.
 * @param tell whether the shell can still tell of one that has died unnoticed */
static void session_close(bool tell)
{
    struct session *s = session;
    bool noticed;

    if (!s || s->owner != getpid())
        return;
    session = NULL;
    noticed = !s->control;
    unwatch(&s->control);
    unwatch(&s->unsent);
    unwatch(&s->relay);
    if (!launch_end(&s->launch) && tell && !noticed)
        server_died(s);
    scratch_remove(&s->scratch, &s->user);
    task_env_free(&s->env);
    job_free(&s->job);
    free(s);
}

static void session_end(void)
{
    session_close(false);
}

static int start_server(struct session *s, const struct launcher *launcher, struct err *err)
{
    unsigned char cpus[CPUS_BYTES] = {0};
    bool known = sched_getaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) >= 0 &&
                 sched_setaffinity(0, sizeof(cpus_before), (cpu_set_t *)cpus_before) == 0;
    int rc = launch_server(&s->launch, launcher, err);

    if (known && sched_setaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) < 0)
        log_warning("the shell cannot be bound again: %s", strerror(errno));
    return rc;
}

static int session_start(struct session *s, flux_shell_t *shell, struct err *err)
{
    struct boot *boot = &s->job.boot;
    struct launcher launcher = {.log = "the job's standard error",
                                .user = &s->user,
                                .scratch = &s->scratch,
                                .listener = -1};

    if (job_read(&s->job, shell, err) < 0 ||
        scratch_make(&s->scratch, s->job.parent_key, s->job.parent, boot->label, &s->user, err) < 0)
        return -1;
    launcher.node = boot->nodes[boot->node].name;
    boot->tmpdir = strdup(s->scratch.path);
    if (!boot->tmpdir)
        return err_set(err, "out of memory");
    if (start_server(s, &launcher, err) < 0)
        return -1;
    if (handshake(&s->launch, boot, &s->env, err) == 0 &&
        watch(s, flux_shell_get_flux(shell), err) == 0)
        return 0;
    launch_kill(&s->launch);
    return -1;
}

/* Whether the shell's plugin cpu-affinity binds each task elsewhere. */
static bool binds_each(flux_shell_t *shell)
{
    const char *how = NULL;

    return flux_shell_getopt_unpack(shell, "cpu-affinity", "s", &how) == 1 && how &&
           (strstr(how, "per-task") || strstr(how, "map:"));
}

/* Of -1 the user would read only that a plugin failed; so the shell is ended here, with the reason.
 */
static int on_init(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    flux_shell_t *shell = flux_plugin_get_shell(p);
    const char *pmi = NULL;
    struct err err = {0};
    struct session *s;

    (void)topic, (void)args, (void)data;
    /* Not earlier: the shell's initrc may set it. */
    if (flux_shell_getopt_unpack(shell, "pmi", "s", &pmi) < 0 || !names(pmi, NAME))
        return 0;           /* the shell itself complains of one that is no string */
    if (names(pmi, "pmix")) /* it would take the tasks' environment for itself, without a word */
        flux_shell_fatal(NULL, NULL, 0, 0, 1,
                         NAME ": -o pmi=%s asks for two PMIx servers, that of muster and that of "
                              "flux-pmix (pmix), and a task can have one: leave one of them out",
                         pmi);
    log_open(shell_sink, NULL, LOG_LEVEL_DEBUG, NULL);
    s = calloc(1, sizeof(*s));
    if (!s)
        return -1;
    s->owner = getpid();
    s->h = flux_shell_get_flux(shell);
    s->user = (struct identity){.uid = geteuid(), .gid = getegid()};
    s->launch.control = -1;
    session = s;
    atexit(session_end);
    s->bound_each = binds_each(shell);
    if (session_start(s, shell, &err) < 0) {
        session_end();
        flux_shell_fatal(NULL, NULL, 0, 0, 1, NAME ": %s", err.text);
    }
    return 0;
}

static void tell(uint32_t first, uint32_t second, uint32_t third)
{
    launch_tell(&session->launch, first, second, third);
    if (session->unsent && launch_flush(&session->launch))
        flux_watcher_start(session->unsent);
}

/* libpmix tells its first client of a node where all tasks there are bound, and none later. The
 * shell starts them one after another and cannot hold them; but they will be bound as it is itself,
 * unless it binds each. */
static void tell_bound(struct session *s)
{
    int64_t deadline = now_ms() + BOUND_MS;
    struct pollfd control = {s->launch.control, POLLIN, 0};
    enum launch_state state = LAUNCH_SERVES;

    if (s->told || s->bound_each)
        return;
    s->told = true;
    for (uint32_t slot = 0; slot < s->env.nslots; slot++)
        tell(slot | BOOT_TASK_STARTED, (uint32_t)getpid(), 0);
    while (state == LAUNCH_SERVES && deadline_left(deadline) > 0) {
        control.events = launch_flush(&s->launch) ? POLLIN | POLLOUT : POLLIN;
        if (poll(&control, 1, deadline_left(deadline)) > 0)
            state = launch_attend(&s->launch);
    }
    if (state == LAUNCH_DIED)
        server_died(s);
    else if (state != LAUNCH_BOUND)
        log_warning("tasks go on before PMIx knows where they are bound");
}

/* Overwrites what the user set: two PMIx servers in one environment serve nobody. */
static int on_task_init(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    flux_shell_task_t *task = flux_shell_current_task(flux_plugin_get_shell(p));
    int slot;

    (void)topic, (void)args, (void)data;
    if (!session)
        return 0;
    if (flux_shell_task_info_unpack(task, "{s:i}", "localid", &slot) < 0 || slot < 0 ||
        (uint32_t)slot >= session->env.nslots) {
        log_error("the shell does not tell which task it starts");
        return -1;
    }
    tell_bound(session);
    for (char **e = session->env.strings[slot]; e && *e; e++) {
        char *value = strchr(*e, '=');
        int rc;

        *value = '\0';
        rc = flux_cmd_setenvf(flux_shell_task_cmd(task), 1, *e, "%s", value + 1);
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
        tell((uint32_t)slot | BOOT_TASK_STARTED, (uint32_t)pid, BOOT_PID_OWN);
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
    tell((uint32_t)slot, (uint32_t)sig, sig != 0 ? 0 : (uint32_t)code);
    return 0;
}

static int on_finish(flux_plugin_t *p, const char *topic, flux_plugin_arg_t *args, void *data)
{
    (void)p, (void)topic, (void)args, (void)data;
    session_close(true);
    return 0;
}

/** @thread the shell's only one, as everything here */
EXPORT int flux_plugin_init(flux_plugin_t *p)
{
    static const struct {
        const char *topic;
        flux_plugin_f call;
    } handlers[] = {{"shell.init", on_init},     {"task.init", on_task_init},
                    {"task.exec", on_task_exec}, {"task.fork", on_task_fork},
                    {"task.exit", on_task_exit}, {"shell.finish", on_finish}};

    if (flux_plugin_set_name(p, NAME) < 0)
        return -1;
    /* where that is not known, all zero: to set it fails, and the server is bound as the shell is
     */
    (void)sched_getaffinity(0, sizeof(cpus_before), (cpu_set_t *)cpus_before);
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (flux_plugin_add_handler(p, handlers[i].topic, handlers[i].call, NULL) < 0)
            return -1;
    }
    return 0;
}
