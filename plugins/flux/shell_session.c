/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of the shell's job: directory, process, messages, end. */
#include "plugins/flux/shell_session.h"

#include "common/util/clock.h"
#include "common/util/log.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CPUS_BYTES = 2048, /* of a set of processors */
    BOUND_MS = 2000,   /* for the server to see where tasks are bound */
    LOST_STATUS = 137, /* of a job whose server is lost, as ending_of_host() has it */
};

/* PMIx's server is no task, and takes a task that may run wherever it may itself for one that is
 * not bound. */
static unsigned char cpus_before[CPUS_BYTES];

void session_note_cpus(void)
{
    /* where that is not known, all zero: to set it fails, and the server is bound as the shell is
     */
    (void)sched_getaffinity(0, sizeof(cpus_before), (cpu_set_t *)cpus_before);
}

static void unwatch(flux_watcher_t **watcher)
{
    if (*watcher)
        flux_watcher_destroy(*watcher);
    *watcher = NULL;
}

/* flux_shell_raise() of Flux has no status. The job manager takes it as wait(2) has it; releases
 * before 0.84 ignore it. No answer is awaited, as the reactor has to go on. */
static void end_job(const struct session *s, const char *note)
{
    const struct boot *boot = &s->job.boot;
    flux_future_t *f =
        flux_rpc_pack(s->h, "job-manager.raise", FLUX_NODEID_ANY, FLUX_RPC_NORESPONSE,
                      "{s:I s:s s:i s:s s:i}", "id", (int64_t)s->job.id, "type", "exec", "severity",
                      0, "note", note, "wait_status", LOST_STATUS << 8);
    if (!f)
        log_error("job %s cannot be ended; end it with: flux cancel %s", boot->label, boot->label);
    flux_future_destroy(f);
}

static const char *node_of(const struct session *s)
{
    return boot_here(&s->job.boot)->name;
}

/* How loud this node says why it has no server: where it is the same on all nodes, one of the job
 * tells the user. */
static enum log_level level_of(const struct session *s)
{
    return s->why.alike && s->job.boot.node != 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR;
}

/* A task asks for PMIx, and there is no server: why, the user has read before. */
static void knocked(void *arg)
{
    const struct session *s = arg;
    char note[320];
    log_write(s->why.alike ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
              "a task on node %s asks for PMIx, and cannot have it: ending the job", node_of(s));
    snprintf(note, sizeof(note), "%.300s", s->why.text);
    end_job(s, note);
}

/* @param port 0, or that of a server which has died */
static int open_door(struct session *s, uint16_t port, struct err *err)
{
    s->door = (struct shell_door){.user = s->user.uid, .knocked = knocked, .arg = s};
    return shell_door_open(&s->door, s->h, port, err);
}

static void server_died(struct session *s)
{
    uint16_t port = s->env.nslots > 0 ? door_port_of(s->env.strings[0]) : 0;
    struct err err = {0};
    char note[320];
    unwatch(&s->control);
    unwatch(&s->unsent);
    unwatch(&s->ask);
    snprintf(note, sizeof(note), "muster-server of job %s died on node %s", s->job.boot.label,
             node_of(s));
    err_set(&s->why, "%s%s", note, s->launch.death);
    if (!s->launch.used && port != 0 && open_door(s, port, &err) == 0) {
        log_error("%s: its tasks run on, since none has used PMIx; the job ends when one does",
                  s->why.text);
        return;
    }
    log_error("%s: ending the job, since its tasks would wait for it for ever", s->why.text);
    end_job(s, note);
}

static void on_control(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct session *s = arg;
    (void)r, (void)w, (void)events;
    if (launch_attend(&s->launch) == LAUNCH_DIED)
        server_died(s);
    else if (s->unsent && launch_flush(&s->launch)) /* an answer */
        flux_watcher_start(s->unsent);
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

static void on_ask(flux_reactor_t *r, flux_watcher_t *w, int events, void *arg)
{
    struct session *s = arg;

    (void)r, (void)w, (void)events;
    launch_ask(&s->launch);
    if (s->unsent && launch_flush(&s->launch))
        flux_watcher_start(s->unsent);
}

static int watch(struct session *s, flux_t *h, struct err *err)
{
    flux_reactor_t *r = flux_get_reactor(h);
    int control = s->launch.control;
    s->control = flux_fd_watcher_create(r, control, FLUX_POLLIN, on_control, s);
    s->unsent = flux_fd_watcher_create(r, control, FLUX_POLLOUT, on_unsent, s);
    s->relay = flux_fd_watcher_create(r, s->launch.relay.fd, FLUX_POLLIN, on_relay, s);
    s->ask = flux_timer_watcher_create(r, SILENCE_ASK_S, SILENCE_ASK_S, on_ask, s);
    if (!s->control || !s->unsent || !s->relay || !s->ask)
        return err_set(err, "the shell cannot watch muster-server");
    flux_watcher_start(s->control);
    flux_watcher_start(s->relay);
    flux_watcher_start(s->ask);
    return 0;
}

void session_close(struct session *s, bool tell)
{
    if (s->closed)
        return;
    s->closed = true;
    bool noticed = !s->control;
    unwatch(&s->control);
    unwatch(&s->unsent);
    unwatch(&s->ask);
    unwatch(&s->relay);
    if (!launch_end(&s->launch) && tell && !noticed && s->launch.used)
        server_died(s);
    shell_door_close(&s->door);
    scratch_remove(&s->scratch, &s->user);
    task_env_free(&s->env);
}

void session_free(struct session *s)
{
    session_close(s, false);
    job_free(&s->job);
    free(s);
}

static int start_server(struct session *s, const struct launcher *launcher, struct err *err)
{
    unsigned char cpus[CPUS_BYTES] = {0};
    bool known = sched_getaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) >= 0 &&
                 sched_setaffinity(0, sizeof(cpus_before), (cpu_set_t *)cpus_before) == 0;
    int rc = launch_server(&s->launch, launcher, err);
    if (known && sched_setaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) < 0)
        log_warning("the job shell cannot be bound to its own processors again: %s",
                    strerror(errno));
    return rc;
}

static int start(struct session *s, flux_shell_t *shell, struct err *err)
{
    struct boot *boot = &s->job.boot;
    struct launcher launcher = {.log = "the job's standard error",
                                .user = &s->user,
                                .scratch = &s->scratch,
                                .listener = -1};
    s->parent = parent_open(shell, boot, s->job.id);
    s->children = children_open(shell, boot, s->job.id);
    if (scratch_make(&s->scratch, s->job.parent_key, s->job.parent, s->job.siblings, boot->label,
                     &s->user, err) < 0)
        return -1;
    launcher.node = boot_here(boot)->name;
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

/* Without a server, programs run that never call PMIx. A program that PMIx_Spawn has started is
 * none of these. @return whether the job goes on */
static bool runs_without(struct session *s)
{
    struct err err = {0};
    if (boot_spawned(&s->job.boot)) /* s->parent is node 0's alone */
        return false;
    if (open_door(s, 0, &err) < 0) {
        log_error("%s", err.text);
        return false;
    }
    log_write(level_of(s), "%s; %s run without PMIx, and the job ends when one of them asks for it",
              s->why.text, s->why.alike ? "its tasks" : "tasks there");
    return true;
}

/* Whether the shell's plugin cpu-affinity binds each task elsewhere. */
static bool binds_each(flux_shell_t *shell)
{
    const char *how = NULL;
    return flux_shell_getopt_unpack(shell, "cpu-affinity", "s", &how) == 1 && how &&
           (strstr(how, "per-task") || strstr(how, "map:"));
}

struct session *session_new(flux_shell_t *shell)
{
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->owner = getpid();
    s->h = flux_shell_get_flux(shell);
    s->user = (struct identity){.uid = geteuid(), .gid = getegid()};
    s->launch.control = -1;
    s->bound_each = binds_each(shell);
    return s;
}

int session_open(struct session *s, flux_shell_t *shell, struct err *err)
{
    /* Without a server a job may run, but a mistake in what it asks for ends it. */
    if (job_read(&s->job, shell, err) < 0)
        return -1;
    if (start(s, shell, &s->why) == 0 || runs_without(s))
        return 0;
    *err = s->why;
    return -1;
}

void session_tell(struct session *s, uint32_t first, uint32_t second, uint32_t third)
{
    if (s->launch.control < 0)
        return;
    launch_tell(&s->launch, first, second, third);
    if (s->unsent && launch_flush(&s->launch))
        flux_watcher_start(s->unsent);
}

/* libpmix tells its first client of a node where all tasks there are bound, and none later. The
 * shell starts them one after another and cannot hold them; but they will be bound as it is itself,
 * unless it binds each. */
void session_tell_bound(struct session *s)
{
    int64_t deadline = now_ms() + BOUND_MS;
    struct pollfd control = {s->launch.control, POLLIN, 0};
    enum launch_state state = LAUNCH_SERVES;
    if (s->told || s->bound_each)
        return;
    s->told = true;
    for (uint32_t slot = 0; slot < s->env.nslots; slot++)
        session_tell(s, slot | BOOT_TASK_STARTED, (uint32_t)getpid(), 0);
    while (state == LAUNCH_SERVES && deadline_left(deadline) > 0) {
        control.events = launch_flush(&s->launch) ? POLLIN | POLLOUT : POLLIN;
        if (poll(&control, 1, deadline_left(deadline)) > 0)
            state = launch_attend(&s->launch);
    }
    if (state == LAUNCH_DIED)
        server_died(s);
    else if (state != LAUNCH_BOUND)
        log_warning(
            "tasks go on before PMIx knows where they are bound: they may lack PMIX_CPUSET");
}
