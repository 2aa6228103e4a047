/* SPDX-License-Identifier: BSD-3-Clause */
/* "flux jobs" knows whose a job is and on which nodes, and "flux exec --jobid" has the job's shells
 * start a program there, as the job's user. */
#include "common/status/reach.h"

#include "common/status/find.h"
#include "common/status/program.h"
#include "common/util/text.h"
#include "plugins/flux/idset.h"
#include "plugins/flux/jobid.h"
#include "plugins/flux/place.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 20000, BROKERS_MAX = 1 << 20 };

/* @return what a command of Flux says, for free(), or NULL */
static char *ask(const char *command, const char *option, const char *what, struct reach *reach)
{
    char *const argv[] = {(char *)"flux", (char *)command, (char *)option, (char *)what, NULL};
    return program_ask(argv, ASK_MS, reach->why, sizeof reach->why);
}

static bool is_twice(char **names)
{
    for (char **a = names; *a != NULL; a++)
        for (char **b = names; b < a; b++)
            if (strcmp(*a, *b) == 0)
                return true;
    return false;
}

/* Of several brokers on one host, as job.c has it: the host and the broker's rank. */
static bool add_ranks(char **names, const char *ranks)
{
    struct ranges ids = {0};
    bool well = idset_parse(&ids, ranks, BROKERS_MAX) == 0;
    for (struct ranges_at at = {0}; well && *names != NULL && ranges_next(&ids, &at);) {
        char *name = text_format("%s_%u", *names, at.number);
        well = name != NULL;
        free(well ? *names : NULL);
        *names = well ? name : *names;
        names++;
    }
    ranges_free(&ids);
    return well;
}

/* @return the nodes' names as servers have them, up to a NULL; NULL: they cannot be had */
static char **node_names(const char *ranks, const char *hosts, struct reach *reach)
{
    char *text = ask("hostlist", "--expand", hosts, reach), *rest = text, *name, **list = NULL;
    while (rest != NULL && (name = strsep(&rest, " \n")) != NULL)
        if (name[0] != '\0' && (list = reach_word(list, name)) == NULL)
            break;
    free(text);
    if (list == NULL || !is_twice(list) || add_ranks(list, ranks))
        return list;
    reach_free_list(list);
    return NULL;
}

/* The brokers of "flux start --test-size" share a directory, in which each node's shell has its
 * own. */
static int add_each(struct reach *reach, const char *job, char **names, struct err *err)
{
    char rank[32], id[40], dir[PLACE_DIR_SIZE];
    int rc = 0;
    snprintf(id, sizeof id, "--jobid=%s", job);
    for (unsigned i = 0; names[i] != NULL && rc == 0; i++) {
        snprintf(rank, sizeof rank, "--rank=%u", i);
        const char *const before[] = {"flux", "exec", id, rank, "--noinput", "--quiet", NULL};
        char **one = place_of_shell(job, i, dir) ? reach_word(NULL, names[i]) : NULL;
        if (one != NULL)
            rc = reach_add(reach, before, dir, job, NULL, one, err);
    }
    reach_free_list(names);
    return rc;
}

static int add_lines(struct reach *reach, const char *job, char **names, struct err *err)
{
    char id[40];
    if (names == NULL)
        return err_set(err, "cannot find out which nodes job %s has, by flux hostlist", job);
    if (place_is_shared())
        return add_each(reach, job, names, err);
    snprintf(id, sizeof id, "--jobid=%s", job);
    const char *const before[] = {"flux", "exec", id, "--noinput", "--quiet", NULL};
    return reach_add(reach, before, NULL, job, NULL, names, err);
}

static int flux_reach(const char *step, struct reach *reach, struct err *err)
{
    char job[JOBID_SIZE], name[64];
    if (!place_name(step, job, sizeof job))
        return 0;
    char *line = ask("jobs", "--format={userid}|{state}|{ranks}|{nodelist}", job, reach);
    char *rest = line, *head = strsep(&rest, "\n"), *user = strsep(&rest, "|"),
         *state = strsep(&rest, "|"), *ranks = strsep(&rest, "|"), *hosts = strsep(&rest, "\n");
    int rc = 0;
    (void)head;
    if (hosts == NULL) {
        free(line);
        return 0;
    }
    reach->owner = (uid_t)strtoul(user, NULL, 10);
    reach->death = SIGKILL; /* on SIGTERM flux exec goes on when what it starts is not up yet */
    if (strcmp(state, "RUN") != 0)
        rc = err_set(err, "job %s does not run: its state is %.20s", job, state);
    else if (reach->uid != (uid_t)-1 && reach->uid != reach->owner)
        rc = err_set(err, "job %s is %s's; only its owner and root may look at it", job,
                     find_user_name(reach->owner, name, sizeof name));
    else
        rc = add_lines(reach, job, node_names(ranks, hosts, reach), err);
    free(line);
    return rc;
}

static char **flux_mine(void)
{
    char *const argv[] = {(char *)"flux",
                          (char *)"jobs",
                          (char *)"--no-header",
                          (char *)"--filter=run",
                          (char *)"--format={id.f58plain}",
                          NULL};
    char why[1], *lines = program_ask(argv, ASK_MS, why, sizeof why), *rest = lines, *line,
                 **list = NULL;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0' && (list = reach_word(list, line)) == NULL)
            break;
    free(lines);
    return list;
}

const struct place flux_place = {.each = place_each,
                                 .name = place_name,
                                 .reach = flux_reach,
                                 .lists = "flux jobs",
                                 .mine = flux_mine};
