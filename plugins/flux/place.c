/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Flux's job shells make the directories of jobs: jobtmp-SHELL-JOBID in the broker's rundir;
 * of users who may not write there in their TMPDIR, or /tmp. Unless muster's tmpdir is set, servers
 * have theirs in it. */
#include "plugins/flux/place.h"

#include "common/status/program.h"
#include "plugins/flux/jobid.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 20000 };

/* What is looked for. */
struct search {
    bool all;
    uint64_t job; /* unless all */
    place_visit_fn *visit;
    void *arg;
};

/* @return whether it is a job's directory; @p shell and @p job are whose */
static bool is_job_directory(const char *name, unsigned *shell, uint64_t *job)
{
    static const char prefix[] = "jobtmp-";
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    name += sizeof prefix - 1;
    *shell = (unsigned)strtoul(name, &end, 10);
    return name[0] >= '0' && name[0] <= '9' && *end == '-' && jobid_parse(end + 1, job);
}

static void look_in(const struct search *search, const char *parent)
{
    const struct dirent *entry;
    DIR *dir = opendir(parent);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX], step[JOBID_SIZE];
        unsigned shell;
        uint64_t job;
        if (!is_job_directory(entry->d_name, &shell, &job) ||
            (!search->all && job != search->job) ||
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= (int)sizeof path)
            continue;
        jobid_write(job, step);
        search->visit(search->arg, path, step);
    }
    if (dir != NULL)
        closedir(dir);
}

/* Two forms need tables that are Flux's own: words, joined by '-', and emoji. */
static bool may_be_flux_only(const char *text)
{
    bool special = false;
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ')
            return false;
        special |= *text == '-' || (unsigned char)*text >= 0x80;
    }
    return special;
}

/* @return the id as Flux's own command reads it, for free(); NULL: it is none, or there is no such
 * command in PATH */
static char *ask_flux(const char *text)
{
    char *const argv[] = {(char *)"flux", (char *)"job", (char *)"id", (char *)"--to=f58plain",
                          (char *)"--",   (char *)text,  NULL};
    char why[1];
    return program_ask(argv, ASK_MS, why, sizeof why);
}

bool place_name(const char *text, char *name, size_t cap)
{
    static const char scheme[] = "flux.";
    char id[JOBID_SIZE];
    uint64_t job;
    if (strncmp(text, scheme, sizeof scheme - 1) == 0) /* a namespace */
        text += sizeof scheme - 1;
    if (!jobid_parse(text, &job)) {
        char *answer = may_be_flux_only(text) ? ask_flux(text) : NULL;
        if (answer != NULL)
            answer[strcspn(answer, "\n")] = '\0';
        bool is = answer != NULL && jobid_parse(answer, &job);
        free(answer);
        if (!is)
            return false;
    }
    jobid_write(job, id);
    return snprintf(name, cap, "%s", id) < (int)cap;
}

/* Of the broker that Flux's commands here would speak to; else of a system instance's. */
static const char *broker_socket(void)
{
    static const char scheme[] = "local://";
    const char *uri = getenv("FLUX_URI");
    if (uri == NULL || strncmp(uri, scheme, sizeof scheme - 1) != 0 || strrchr(uri, '/') == NULL)
        uri = "local:///run/flux/local";
    return uri + sizeof scheme - 1;
}

static void find_rundir(char *rundir, size_t cap)
{
    const char *socket = broker_socket(), *end = strrchr(socket, '/');
    snprintf(rundir, cap, "%.*s", end != NULL ? (int)(end - socket) : 0, socket);
}

bool place_is_shared(void)
{
    const char *end = strrchr(broker_socket(), '/');
    return end != NULL && strncmp(end, "/local-", strlen("/local-")) == 0;
}

/* What is looked for, and where it is. */
struct shell_search {
    unsigned shell;
    bool found;
    char *dir; /* PLACE_DIR_SIZE bytes */
};

static void visit_shell(void *arg, const char *path, const char *step)
{
    struct shell_search *search = arg;
    unsigned shell;
    uint64_t job;
    (void)step;
    if (path == NULL || !is_job_directory(strrchr(path, '/') + 1, &shell, &job) ||
        shell != search->shell || search->found)
        return;
    snprintf(search->dir, PLACE_DIR_SIZE, "%s", path);
    search->found = true;
}

void place_each(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap)
{
    struct search search = {.all = step == NULL, .visit = visit, .arg = arg};
    const char *tmpdir = getenv("TMPDIR");
    char rundir[PATH_MAX], name[JOBID_SIZE];
    where[0] = '\0';
    if (step != NULL && (!place_name(step, name, sizeof name) || !jobid_parse(name, &search.job)))
        return;
    if (step != NULL)
        visit(arg, NULL, name);
    find_rundir(rundir, sizeof rundir);
    if (tmpdir == NULL || tmpdir[0] != '/')
        tmpdir = "/tmp";
    look_in(&search, rundir);
    look_in(&search, tmpdir);
    if (strcmp(tmpdir, "/tmp") != 0)
        look_in(&search, "/tmp");
    snprintf(where, cap, "%.200s/jobtmp-*", rundir);
}

bool place_of_shell(const char *job, unsigned shell, char dir[static PLACE_DIR_SIZE])
{
    struct shell_search search = {.shell = shell, .dir = dir};
    char where[1];
    place_each(job, visit_shell, &search, where, sizeof where);
    return search.found;
}
