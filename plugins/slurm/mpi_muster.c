/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * mpi/muster: what Slurm loads.
 *
 * slurmctld and slurmd load it too and want answers, no more. srun has an agent, which learns how
 * the step ends (agent.h):
 *
 *     prelaunch   start the agent, its address into the tasks' environment
 *     client_fini stop it, the step's status to srun
 *
 * The work is slurmstepd's, once for each step and node:
 *
 *     prefork   (root, main thread)    facts → temporary directory → listening socket →
 *                                      muster-server as the user → environment of each task → watch
 *                                      or, where that fails: why → srun's agent (herald.h)
 *     task      (user, forked child)   that environment into the task, its pid to the watch
 *     fini      (root, main thread)    the watch stops, the server leaves, nothing stays behind
 *
 * PMIx is muster-server's alone. slurmstepd runs as root, changes the uid of all its threads while
 * it launches, and forks tasks under running threads; libpmix can stand none of that.
 */
#include "common/launch/door.h"
#include "common/launch/handshake.h"
#include "common/launch/launch.h"
#include "common/launch/own_settings.h"
#include "common/launch/plan.h"
#include "common/launch/scratch.h"
#include "common/util/log.h"
#include "common/util/mark.h"
#include "common/util/text.h"
#include "plugins/slurm/agent.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/cgroup.h"
#include "plugins/slurm/facts.h"
#include "plugins/slurm/herald.h"
#include "plugins/slurm/listener.h"
#include "plugins/slurm/mpi_conf.h"
#include "plugins/slurm/own_program.h"
#include "plugins/slurm/watch.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MARK_VERSION;

#define EXPORT __attribute__((visibility("default")))

/* What every Slurm plugin has. */
EXPORT const char plugin_name[] = "muster PMIx host";
EXPORT const char plugin_type[] = "mpi/muster";
/* plugin_version: abi_version.c */
/** "mu": Slurm's own plugins have 101 to 108. */
EXPORT const uint32_t plugin_id = 0x6d75;

/* The nine operations, in Slurm's order; called by name. */
EXPORT int mpi_p_client_fini(void *state);
EXPORT void *mpi_p_client_prelaunch(const struct slurm_abi_step_info *step, char ***env);
EXPORT void *mpi_p_conf_get(void);
EXPORT void *mpi_p_conf_get_printable(void);
EXPORT void mpi_p_conf_options(void **options, int *count);
EXPORT void mpi_p_conf_set(void *table);
EXPORT int mpi_p_slurmstepd_prefork(const void *step, char ***env);
EXPORT int mpi_p_slurmstepd_task(const struct slurm_abi_task_info *task, char ***env);
EXPORT int init(void);
EXPORT int fini(void);

enum { WHY_MAX = sizeof(((struct err *)0)->text) + 256 };

/** A step on this node. */
struct session {
    pid_t owner; /**< that ran prefork: forked children have a copy of all this */
    struct facts facts;
    struct scratch scratch;
    struct listener listener;
    struct launch launch;
    struct task_env env;
    struct watch *watch;   /**< NULL: the step is not known, and nothing can end it */
    struct door door;      /**< for tasks that no server serves */
    struct err refusal;    /**< why there is no server; empty: there is one */
    struct herald *herald; /**< for lines that many nodes may have alike; NULL: they are logged */
};

static struct session *session;

static void log_for_user(const char *line)
{
    slurm_abi_error("mpi/muster: %s", line);
}

static void slurm_sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_CAUSE && session && session->herald && session->owner == getpid())
        herald_say(session->herald, text);
    else if (level <= LOG_LEVEL_ERROR)
        log_for_user(text);
    else if (level <= LOG_LEVEL_INFO)
        slurm_abi_info("mpi/muster: %s", text);
    else
        slurm_abi_debug("mpi/muster: %s", text);
}

int init(void)
{
    log_open(slurm_sink, NULL, LOG_LEVEL_DEBUG, NULL);
    return SLURM_ABI_SUCCESS;
}

void *mpi_p_conf_get(void)
{
    return NULL;
}

void *mpi_p_conf_get_printable(void)
{
    return NULL;
}

/* No options: then Slurm has no table for us, and conf_get no answer. See mpi_conf.h. */
void mpi_p_conf_options(void **options, int *count)
{
    (void)options;
    (void)count;
}

/** Says in the daemons' logs what prefork will refuse steps for.
 * @thread main, of slurmctld and slurmd when they start or are reconfigured */
void mpi_p_conf_set(void *table)
{
    struct err err = {0};
    (void)table;
    if (mpi_conf_check(&err) < 0)
        log_error("%s", err.text);
}

/** Once for each component of a step. @thread one of srun's for each component */
void *mpi_p_client_prelaunch(const struct slurm_abi_step_info *step, char ***env)
{
    static char none;
    struct slurm_abi_step_id id = slurm_abi_step_of(step);
    agent_enter(&id, env);
    return &none; /* anything but NULL, which is an error */
}

/** When a component has ended. @return srun's exit status, or 0: it knows better
 * @thread one of srun's for each component */
int mpi_p_client_fini(void *state)
{
    (void)state;
    return agent_leave();
}

/* Nothing stays behind. */
static void session_free(struct session *s)
{
    listener_remove(&s->listener);
    scratch_remove(&s->scratch, &s->facts.user);
    door_close(&s->door);
    herald_free(s->herald);
    task_env_free(&s->env);
    facts_free(&s->facts);
    free(s);
}

/* The server's socket refuses no sender that has found it, so its name goes first. */
static void hide_socket(void *listener)
{
    listener_remove(listener);
}

/* slurmstepd's own SLURM_CONF, if it has one; prefork's environment is the user's. */
static int start_server(struct session *s, struct err *err)
{
    const char *conf = getenv("SLURM_CONF");
    char *setting = NULL;
    const char *env[] = {NULL, NULL};
    struct launcher launcher = {.node = s->facts.node,
                                .log = "slurmd's log there",
                                .user = &s->facts.user,
                                .scratch = &s->scratch,
                                .listener = s->listener.fd,
                                .env = env,
                                .at_gate = cgroup_leave_step,
                                .on_left = hide_socket,
                                .arg = &s->listener};
    if (conf && asprintf(&setting, "SLURM_CONF=%s", conf) < 0)
        return err_set(err, "out of memory");
    env[0] = setting;
    int rc = launch_server(&s->launch, &launcher, err);
    free(setting);
    return rc;
}

/* Hands on what the environment of a spawned step says of it. It is the user's word: only the
 * server looks at it. */
static void take_plan(struct boot *boot, char *const *env)
{
    const char *parent = agent_env_value(env, PLAN_PARENT_ENV);
    const char *apps = agent_env_value(env, PLAN_APPS_ENV);
    if (parent)
        boot_set(boot, BOOT_PARENT, parent);
    if (parent && apps)
        boot_set(boot, "apps", apps);
}

/* The program that prints what the tasks print: sattach, once for each component of a heterogeneous
 * job. (Of components of one job it mixes up the ranks.) It is Slurm's own, beside slurmstepd, and
 * not what the user's PATH has: the server runs it outside of the job's limits. MUSTER_PRINTER in
 * slurmstepd's own environment, which is musterrun's, names another one or none. */
static void name_printer(struct boot *boot, const struct facts *facts)
{
    static const char *const places[] = {"../bin", "."};
    const char *given = getenv("MUSTER_PRINTER");
    char self[PATH_MAX], program[PATH_MAX + 16] = "";
    if (given)
        boot_set(boot, BOOT_PRINTER, given);
    if (given || facts->component != SLURM_ABI_NO_VAL || own_program(self, sizeof self) != 0)
        return;
    size_t len = (size_t)(strrchr(self, '/') - self);
    for (size_t i = 0; i < sizeof places / sizeof *places && access(program, X_OK) != 0; i++)
        snprintf(program, sizeof program, "%.*s/%s/sattach", (int)len, self, places[i]);
    if (access(program, X_OK) != 0)
        return;
    char *command = strdup("");
    for (uint32_t k = 0; k < facts->njobs; k++) {
        uint32_t ntasks = facts->njobs > 1 ? boot_app(boot, k).ntasks : boot->ntasks;
        char *one = text_format("%u %s --label --quiet %u.%u", ntasks, program, facts->jobs[k],
                                facts->step);
        command = text_append(command, " ; ", one != NULL ? one : "");
        free(one);
    }
    boot_set(boot, BOOT_PRINTER, command != NULL ? command : "");
    free(command);
}

/* @param agent as agent_find() gave it */
static int session_start(struct session *s, char *const *env, const char *agent, struct err *err)
{
    struct boot *boot = &s->facts.boot;
    if (mpi_conf_check(err) < 0 ||
        scratch_make(&s->scratch, s->facts.tmpfs_key, s->facts.tmpfs, NULL, boot->label,
                     &s->facts.user, err) < 0 ||
        listener_open(&s->listener, &s->facts, err) < 0)
        return -1;
    if (agent)
        boot_set(boot, "agent", agent);
    boot_set(boot, "other_pmi", "srun --mpi=pmi2");
    take_plan(boot, env);
    name_printer(boot, &s->facts);
    boot->tmpdir = strdup(s->scratch.path);
    boot_set(boot, "socket", s->listener.path);
    own_settings(boot, env);
    if (start_server(s, err) < 0)
        return -1;
    if (handshake(&s->launch, boot, &s->env, err) == 0)
        s->watch = watch_start(&(struct watched){.facts = &s->facts,
                                                 .launch = &s->launch,
                                                 .listener = &s->listener,
                                                 .env = &s->env,
                                                 .door = &s->door,
                                                 .herald = s->herald},
                               err);
    if (!s->watch) {
        launch_kill(&s->launch);
        return -1;
    }
    return 0;
}

/* A step that PMIx_Spawn has started needs its server, and one of which nothing is known cannot be
 * ended when its program asks for one. */
static bool can_run_without(const struct session *s, char *const *env)
{
    return s->facts.job != 0 && s->door.fd >= 0 && !agent_env_value(env, PLAN_PARENT_ENV);
}

/* What the user reads of tasks that no server serves. */
static void say_why(const struct session *s, char *const *env, const struct err *why, char *buf,
                    size_t cap)
{
    if (!can_run_without(s, env))
        snprintf(buf, cap, "%s", why->text);
    else if (why->alike)
        snprintf(buf, cap,
                 "%s; its tasks run without PMIx, and the step ends when one of them asks for it",
                 why->text);
    else
        snprintf(buf, cap,
                 "%s; tasks there run without PMIx, and the step ends when one of them asks for "
                 "it; muster-check -w %s says more",
                 why->text, s->facts.node);
}

/* Without a server programs run that never call PMIx. Peers that need this node come to a socket
 * that refuses them, and do not wait. The user is told before there are tasks: the thread that does
 * it has to have ended when slurmstepd forks these. */
static void run_without(struct session *s, char *const *env)
{
    struct err err = {0};
    char line[WHY_MAX];
    say_why(s, env, &s->refusal, line, sizeof line);
    log_write(s->refusal.alike && s->facts.boot.node != 0 ? LOG_LEVEL_INFO : LOG_LEVEL_CAUSE, "%s",
              line);
    herald_wait(s->herald);
    if (s->listener.path[0] == '\0' && s->facts.runs[0].first != 0 &&
        listener_open(&s->listener, &s->facts, &err) < 0)
        log_debug("%s", err.text);
    listener_close(&s->listener);
    if (s->facts.job != 0)
        s->watch = watch_start(
            &(struct watched){
                .facts = &s->facts, .door = &s->door, .why = &s->refusal, .herald = s->herald},
            &err);
}

/** Never fails: of a failed prefork srun is told no more than that it failed, has not even a
 * connection to print it from, and ends with status 0.
 * @thread slurmstepd's main thread, as root or as slurmd's user */
int mpi_p_slurmstepd_prefork(const void *step, char ***env)
{
    struct session *s = calloc(1, sizeof(*s));
    char *const *vars = env ? *env : NULL;
    struct err err = {0};
    (void)step;
    if (!s)
        return SLURM_ABI_ERROR;
    s->owner = getpid();
    s->listener.fd = s->launch.control = -1;
    session = s;
    if (door_open(&s->door, 0, &err) < 0)
        log_error("%s", err.text);
    int rc = facts_read(&s->facts, vars, &s->refusal);
    char *agent = agent_find(vars);
    bool known = s->facts.user.ngroups > 0; /* of the user, his groups are found out last */
    s->herald = herald_new(&(struct herald_of){.user = &s->facts.user,
                                               .node = s->facts.node,
                                               .agent = known ? agent : NULL,
                                               .log = log_for_user});
    if (rc < 0 || session_start(s, vars, agent, &s->refusal) < 0)
        run_without(s, vars);
    free(agent);
    return SLURM_ABI_SUCCESS;
}

/* @return what the user has to read of this task, written to @p line; NULL: one of each node says
 * it, or slurmstepd has before there were tasks (run_without()) */
static const char *tells(const struct slurm_abi_task_info *task, char *const *env,
                         const struct err *why, char *line, size_t cap)
{
    log_debug("%s", why->text);
    if (task->ltaskid != 0 || (session->watch && session->refusal.text[0] != '\0'))
        return NULL;
    say_why(session, env, why, line, cap);
    return line;
}

/* Has the step ended: the tasks of other nodes would wait for this one. */
static int refuse(const char *line)
{
    if (session->watch)
        notes_refused(watch_notes(session->watch), line);
    else if (line)
        log_error("%s", line);
    errno = ECANCELED; /* slurmstepd logs it */
    return SLURM_ABI_ERROR;
}

static void set_env(void *arg, const char *key, const char *value)
{
    slurm_abi_env_overwrite(arg, key, value);
}

/* The task runs without a server, if its program never calls PMIx. */
static int send_to_door(const struct slurm_abi_task_info *task, char ***env, const struct err *why)
{
    const struct session *s = session;
    char nspace[64], buf[WHY_MAX];
    const char *line = tells(task, *env, why, buf, sizeof buf);
    if (!s->watch || !can_run_without(s, *env))
        return refuse(line);
    snprintf(nspace, sizeof(nspace), "slurm.%u.%u", s->facts.jobs[0], s->facts.step);
    door_tell(&s->door, nspace, task->gtaskid, set_env, env);
    notes_unserved(watch_notes(s->watch), line);
    return SLURM_ABI_SUCCESS;
}

/* The server counts ranks as slurmctld's records do, which do not make the whole step when a
 * component of it has ended already. */
static bool is_ours(const struct slurm_abi_task_info *task, uint32_t slot)
{
    const struct boot *boot = &session->facts.boot;
    const struct boot_node *node = boot_here(boot);
    return slot < node->ntasks && task->ntasks == boot->ntasks &&
           node->ranks[slot] == task->gtaskid;
}

/* @return whether the task can be served, else the reason is in err. Slurm may give tasks a /tmp of
 * their own (job_container/tmpfs, namespace/tmpfs), but libpmix's clients take files from their
 * server's directory, and programs are told of places in it. */
static bool can_serve(const struct slurm_abi_task_info *task, struct err *err)
{
    const struct facts *facts = &session->facts;
    if (session->refusal.text[0] != '\0')
        *err = session->refusal;
    else if (!is_ours(task, (uint32_t)task->ltaskid))
        err_set(err,
                "task %u of step %s on node %s is one of %u, and slurmctld has %u on record: a "
                "component of the step has ended already",
                task->gtaskid, facts->boot.label, facts->node, task->ntasks, facts->boot.ntasks);
    else if (!scratch_is_seen(&session->scratch))
        err_set(err,
                "tasks of step %s on node %s do not see the directory %s of their server, as Slurm "
                "gives them a file system of their own there: set tmpdir in " MUSTER_CONF_PATH
                " to a directory elsewhere",
                facts->boot.label, facts->node, session->scratch.path);
    else
        return true;
    return false;
}

/** Overwrites what the user set: with two PMIx servers in its environment a task reaches none.
 * @thread a task's process between fork and exec, as the user */
int mpi_p_slurmstepd_task(const struct slurm_abi_task_info *task, char ***env)
{
    uint32_t slot = (uint32_t)task->ltaskid;
    struct err why = {0};
    if (!session)
        return SLURM_ABI_ERROR;
    if (!can_serve(task, &why))
        return send_to_door(task, env, &why);
    for (char **p = session->env.strings[slot]; p && *p; p++) {
        char *value = strchr(*p, '=');
        *value++ = '\0'; /* this process's own copy */
        slurm_abi_env_overwrite(env, *p, value);
    }
    notes_task(watch_notes(session->watch), slot, getpid());
    return SLURM_ABI_SUCCESS;
}

/** @thread main, of any process that loaded us; also of children forked by slurmstepd */
int fini(void)
{
    struct session *s = session;
    if (!s || s->owner != getpid())
        return SLURM_ABI_SUCCESS;
    watch_stop(s->watch);
    launch_end(&s->launch);
    session = NULL;
    session_free(s);
    return SLURM_ABI_SUCCESS;
}
