/* SPDX-License-Identifier: BSD-3-Clause */
/* squeue knows which nodes a step has, and srun --overlap starts a program there, within the limits
 * of the job and as its user. A step of several components has one there for each, under a job
 * number of its own; srun is told the number of the first and which component. */
#include "plugins/slurm/reach.h"

#include "common/status/find.h"
#include "common/status/program.h"
#include "common/util/text.h"
#include "plugins/slurm/srun_env.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK_MS = 20000, DIGITS_MAX = 10, COMPONENTS_MAX = 128 /* Slurm's MAX_HET_JOB_COMPS */ };

extern char **environ;

/* "4711" or "4711.0", in two parts. */
struct step_name {
    char job[DIGITS_MAX + 1], step[DIGITS_MAX + 1];
};

static bool read_name(const char *text, struct step_name *name)
{
    size_t job = strspn(text, "0123456789");
    const char *step = text[job] == '.' ? text + job + 1 : "0";
    size_t len = strspn(step, "0123456789");
    if (job == 0 || job > DIGITS_MAX || (text[job] != '\0' && text[job] != '.') || len == 0 ||
        len > DIGITS_MAX || step[len] != '\0')
        return false;
    snprintf(name->job, sizeof name->job, "%.*s", (int)job, text);
    snprintf(name->step, sizeof name->step, "%s", step);
    return true;
}

/* A job, or one component of it. */
struct component {
    char job[DIGITS_MAX + 1];    /* its own number */
    char leader[DIGITS_MAX + 1]; /* what srun calls it by */
    char group[DIGITS_MAX + 1];  /* which component it is, or "" */
};

/* @return names of "node[1-4]", one a line, for free(), or NULL */
static char *host_names(const char *list)
{
    char *const argv[] = {(char *)"scontrol", (char *)"show", (char *)"hostnames", (char *)list,
                          NULL};
    return program_ask(argv, ASK_MS, NULL, 0);
}

/* @return lines as a list, or NULL: there are none, or memory ran out */
static char **split(char *lines, size_t *n)
{
    char **list = NULL, *line;
    for (*n = 0; (line = strsep(&lines, "\n")) != NULL;) {
        if (line[0] == '\0')
            continue;
        list = reach_word(list, line);
        if (list == NULL)
            return NULL;
        ++*n;
    }
    return list;
}

/* @param hosts as squeue has them */
static int add_line(struct reach *reach, const struct step_name *name,
                    const struct component *component, const char *hosts, struct err *err)
{
    char step[2 * DIGITS_MAX + 2], job[32], nodes[32], tasks[32], group[40];
    size_t n = 0;
    char *names = host_names(hosts), **list = names != NULL ? split(names, &n) : NULL,
         *where = text_format("--nodelist=%s", hosts), **env = srun_env(environ);
    free(names);
    snprintf(step, sizeof step, "%s.%s", name->job, name->step);
    snprintf(job, sizeof job, "--jobid=%s", component->leader);
    snprintf(nodes, sizeof nodes, "--nodes=%zu", n);
    snprintf(tasks, sizeof tasks, "--ntasks=%zu", n);
    snprintf(group, sizeof group, "--het-group=%s", component->group);
    const char *const before[] = {"srun",
                                  job,
                                  "--overlap",
                                  "--mpi=none",
                                  "--mem=0",
                                  "--input=none",
                                  "--kill-on-bad-exit=0",
                                  "--job-name=muster",
                                  nodes,
                                  tasks,
                                  "--ntasks-per-node=1",
                                  where,
                                  component->group[0] != '\0' ? group : NULL,
                                  NULL};
    if (list != NULL && where != NULL && env != NULL) {
        int rc = reach_add(reach, before, NULL, step, env, list, err);
        free(where);
        return rc;
    }
    free(where);
    reach_free_list(list);
    reach_free_list(env);
    return err_set(err, "cannot find out which nodes %.200s are, by scontrol show hostnames",
                   hosts);
}

static int check_owner(struct reach *reach, const char *user, const char *step, struct err *err)
{
    const struct passwd *entry = getpwnam(user);
    char *end;
    unsigned long number = strtoul(user, &end, 10);
    if (entry == NULL && (user[0] == '\0' || *end != '\0'))
        return err_set(err, "this host does not know user %.64s, whose step %s is", user, step);
    reach->owner = entry != NULL ? entry->pw_uid : (uid_t)number;
    if (reach->uid == (uid_t)-1 || reach->uid == reach->owner)
        return 0;
    return err_set(err, "step %s is %.64s's; only its owner and root may look at it", step, user);
}

struct components {
    struct component v[COMPONENTS_MAX];
    size_t n;
};

static char *ask_squeue(char *which, char *format, struct reach *reach)
{
    char *const argv[] = {(char *)"squeue", (char *)"--noheader", which, format, NULL};
    return program_ask(argv, ASK_MS, reach->why, sizeof reach->why);
}

/* "4711|4711", or "4711+1|4712" of a component. */
static void take_component(struct components *components, char *line)
{
    struct component *c = &components->v[components->n];
    char *id = strsep(&line, "|"), *job = line, *group = strchr(id, '+');
    if (job == NULL || strspn(job, "0123456789") != strlen(job) || strlen(job) > DIGITS_MAX ||
        components->n == COMPONENTS_MAX)
        return;
    if (group != NULL)
        *group++ = '\0';
    snprintf(c->job, sizeof c->job, "%s", job);
    snprintf(c->leader, sizeof c->leader, "%.*s", DIGITS_MAX, group != NULL ? id : job);
    snprintf(c->group, sizeof c->group, "%.*s", DIGITS_MAX, group != NULL ? group : "");
    components->n++;
}

static void find_components(struct components *components, const struct step_name *name,
                            struct reach *reach)
{
    char which[32], *line;
    snprintf(which, sizeof which, "--jobs=%s", name->job);
    char *lines = ask_squeue(which, (char *)"--format=%i|%A", reach), *rest = lines;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        take_component(components, line);
    free(lines);
}

/* "4711.0|alice|node[1-4]". */
static int take_line(struct reach *reach, const struct step_name *name,
                     const struct component *component, char *line, struct err *err)
{
    char *id = strsep(&line, "|"), *user = strsep(&line, "|"), *hosts = line;
    if (id[0] == '\0' || user == NULL || hosts == NULL || hosts[0] == '\0')
        return 0;
    if (check_owner(reach, user, name->job, err) != 0)
        return -1;
    return add_line(reach, name, component, hosts, err);
}

int slurm_reach(const char *step, struct reach *reach, struct err *err)
{
    struct step_name name;
    struct components components = {.n = 0};
    int rc = 0;
    if (!read_name(step, &name))
        return 0;
    find_components(&components, &name, reach);
    for (size_t i = 0; i < components.n && rc == 0; i++) {
        char which[64], *line;
        snprintf(which, sizeof which, "--steps=%s.%s", components.v[i].job, name.step);
        char *lines = ask_squeue(which, (char *)"--format=%i|%u|%N", reach), *rest = lines;
        while (rc == 0 && rest != NULL && (line = strsep(&rest, "\n")) != NULL)
            rc = take_line(reach, &name, &components.v[i], line, err);
        free(lines);
    }
    return rc;
}

/* "4711.0|name". Others than tasks' steps have no number (4711.batch), and those of muster's own
 * programs (add_line()) have its name. A step of several components has a line for each, 4711+1.0.
 * @return whether the name is @p step, without the component */
static bool is_mine(char *line, char step[static 2 * DIGITS_MAX + 2])
{
    struct step_name name;
    char *id = strsep(&line, "|"), *dot = strchr(id, '.');
    if (dot == NULL || line == NULL || strcmp(line, "muster") == 0)
        return false;
    char *plus = strchr(id, '+');
    if (plus != NULL)
        memmove(plus, dot, strlen(dot) + 1);
    if (!read_name(id, &name))
        return false;
    snprintf(step, 2 * DIGITS_MAX + 2, "%s.%s", name.job, name.step);
    return true;
}

char **slurm_mine(void)
{
    char *const argv[] = {(char *)"squeue",  (char *)"--noheader",     (char *)"--me",
                          (char *)"--steps", (char *)"--format=%i|%j", NULL};
    char step[2 * DIGITS_MAX + 2], last[sizeof step] = "", why[1];
    char *lines = program_ask(argv, ASK_MS, why, sizeof why), *rest = lines, *line, **list = NULL;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
        if (!is_mine(line, step) || strcmp(step, last) == 0)
            continue;
        memcpy(last, step, sizeof last);
        if ((list = reach_word(list, step)) == NULL)
            break;
    }
    free(lines);
    return list;
}
