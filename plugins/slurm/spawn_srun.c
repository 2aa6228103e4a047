/* SPDX-License-Identifier: BSD-3-Clause */
/* How a spawned step is asked for. The environment is that of the first srun (srun_env.h). What a
 * process runs stands in variables, too, as other users see command lines. */
#include "plugins/slurm/spawn_srun.h"

#include "common/launch/boot.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/srun_env.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPONENTS_MAX = 128 /* Slurm's MAX_HET_JOB_COMPS */ };

struct list {
    char **items;
    size_t n;
    bool failed;
};

static void add(struct list *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct list *list, const char *fmt, ...)
{
    char **more = realloc(list->items, (list->n + 2) * sizeof *more);
    va_list ap;
    if (more == NULL) {
        list->failed = true;
        return;
    }
    list->items = more;
    va_start(ap, fmt);
    if (vasprintf(&more[list->n], fmt, ap) < 0) {
        more[list->n] = NULL;
        list->failed = true;
    }
    va_end(ap);
    list->n += more[list->n] != NULL;
    more[list->n] = NULL;
}

void spawn_list_free(char **list)
{
    for (char **p = list; p != NULL && *p != NULL; p++)
        free(*p);
    free(list);
}

static char **finish(struct list *list)
{
    if (!list->failed)
        return list->items;
    spawn_list_free(list->items);
    return NULL;
}

static void add_places(struct list *argv, const struct spawn_place *place,
                       const struct rm_spawn *what)
{
    static const char *const binds[] = {
        [RM_BIND_NONE] = "none",  [RM_BIND_THREAD] = "threads", [RM_BIND_CORE] = "cores",
        [RM_BIND_NUMA] = "ldoms", [RM_BIND_SOCKET] = "sockets",
    };
    if (what->hosts != NULL) {
        add(argv, "--nodelist=%s", what->hosts);
        add(argv, "--distribution=arbitrary");
    } else if (what->map == RM_MAP_NODES) {
        add(argv, "--distribution=cyclic");
    } else if (what->map == RM_MAP_BLOCK) {
        add(argv, "--distribution=block");
    }
    if (what->hosts == NULL && what->per_node > 0) {
        add(argv, "--nodes=%u", (what->ntasks + what->per_node - 1) / what->per_node);
        add(argv, "--ntasks-per-node=%u", what->per_node);
    } else if (what->hosts == NULL && place->idle != NULL) {
        add(argv, "--nodes=%u", place->nidle);
        add(argv, "--nodelist=%s", place->idle);
    }
    if (what->bind != RM_BIND_ANY)
        add(argv, "--cpu-bind=%s", binds[what->bind]);
}

static void add_streams(struct list *argv, const struct rm_spawn *what)
{
    if (what->input == RM_INPUT_NONE)
        add(argv, "--input=none");
    else if (what->input != RM_INPUT_ALL)
        add(argv, "--input=%u", what->input);
    if (what->tag)
        add(argv, "--label");
    if (what->output == NULL)
        return;
    add(argv, "--output=%s.%%t%s", what->output, what->merge ? "" : ".out");
    if (!what->merge)
        add(argv, "--error=%s.%%t.err", what->output);
}

/* Of an allocation of several components, srun has to be told which one. */
static void add_job(struct list *argv, const struct spawn_place *place)
{
    const char *size = agent_env_value(place->env, "SLURM_HET_SIZE"), *first, *id;
    unsigned long n = size != NULL ? strtoul(size, NULL, 10) : 0;
    first = agent_env_value(place->env, "SLURM_JOB_ID_HET_GROUP_0");
    for (unsigned long k = 0; first != NULL && k < n && k < COMPONENTS_MAX; k++) {
        char name[64];
        snprintf(name, sizeof name, "SLURM_JOB_ID_HET_GROUP_%lu", k);
        id = agent_env_value(place->env, name);
        if (id == NULL || strtoul(id, NULL, 10) != place->job)
            continue;
        add(argv, "--jobid=%s", first);
        add(argv, "--het-group=%lu", k);
        return;
    }
    add(argv, "--jobid=%u", place->job);
}

char **spawn_argv(const struct spawn_place *place, const struct spawn_order *order,
                  enum spawn_cpus cpus)
{
    const struct rm_spawn *what = &order->what;
    struct list argv = {0};
    add(&argv, "srun");
    add_job(&argv, place);
    add(&argv, "--mpi=muster");
    add(&argv, "--ntasks=%u", what->ntasks);
    add(&argv, "--mem=0"); /* what the job has; steps share it */
    if (cpus == SPAWN_FREE_CPUS) {
        add(&argv, "--exact");
        add(&argv, "--immediate=1");
    } else {
        add(&argv, "--overlap");
        add(&argv, "--immediate=10");
    }
    if (what->overcommit)
        add(&argv, "--overcommit");
    add_places(&argv, place, what);
    add_streams(&argv, what);
    add(&argv, "%s", MUSTER_EXEC_PATH);
    return finish(&argv);
}

char **spawn_env(const struct spawn_place *place, const struct spawn_order *order)
{
    struct list env = {.items = srun_env(place->env)};
    env.failed = env.items == NULL;
    while (!env.failed && env.items[env.n] != NULL)
        env.n++;
    for (uint32_t i = 0; i < order->what.nplan; i++)
        add(&env, PLAN_ENV "%u=%s", i, order->what.plan[i]);
    add(&env, PLAN_PARENT_ENV "=%u %s", order->what.rank, order->what.parent);
    add(&env, PLAN_APPS_ENV "=%s", order->what.apps);
    add(&env, PLAN_CHANNEL_ENV "=%d", SPAWN_FD_CHANNEL);
    if (order->what.psets != NULL)
        add(&env, BOOT_PSETS_ENV "=%s", order->what.psets);
    if (order->what.debug != NULL)
        add(&env, BOOT_DEBUG_ENV "=%s", order->what.debug);
    return finish(&env);
}

/* The descriptors are first moved out of each other's way: an order of dup2() could overwrite one
 * that is still needed. */
static int start(const struct spawn_place *place, const struct spawn_order *order, char **argv,
                 char **env, pid_t *pid)
{
    enum { ABOVE = 64 };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int channel = fcntl(place->channel, F_DUPFD_CLOEXEC, ABOVE);
    int errors = fcntl(place->errors, F_DUPFD_CLOEXEC, ABOVE);
    int terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, ABOVE);
    int rc = channel < 0 || errors < 0 || terminal < 0 ? errno : 0;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&files);
    if (order->what.input == RM_INPUT_NONE)
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, channel, SPAWN_FD_CHANNEL);
    posix_spawn_file_actions_adddup2(
        &files, order->what.merge && order->what.output == NULL ? STDOUT_FILENO : terminal,
        SPAWN_FD_ERRORS);
    posix_spawn_file_actions_addclosefrom_np(&files, SPAWN_FD_ERRORS + 1);
    if (rc == 0)
        rc = posix_spawn(pid, place->program, &files, &attr, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (channel >= 0)
        close(channel);
    if (errors >= 0)
        close(errors);
    if (terminal >= 0)
        close(terminal);
    return rc;
}

int spawn_srun(const struct spawn_place *place, const struct spawn_order *order,
               enum spawn_cpus cpus, pid_t *pid)
{
    char **argv = spawn_argv(place, order, cpus), **env = spawn_env(place, order);
    int rc = argv != NULL && env != NULL ? start(place, order, argv, env, pid) : ENOMEM;
    spawn_list_free(argv);
    spawn_list_free(env);
    return rc;
}
