/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Flux's job shells make the directories of jobs: jobtmp-SHELL-JOBID in the broker's rundir;
 * of users who may not write there in their TMPDIR, or /tmp. Unless muster's tmpdir is set, servers
 * have theirs in it. */
#include "plugins/flux/place.h"

#include "plugins/flux/jobid.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is looked for. */
struct search {
    bool all;
    uint64_t job; /* unless all */
    place_visit_fn *visit;
    void *arg;
};

/* @return whether it is a job's directory, and the job in @p job */
static bool is_job_directory(const char *name, uint64_t *job)
{
    static const char prefix[] = "jobtmp-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    name += sizeof prefix - 1;
    size_t shell = strspn(name, "0123456789");
    return shell > 0 && name[shell] == '-' && jobid_parse(name + shell + 1, job);
}

static void look_in(const struct search *search, const char *parent)
{
    const struct dirent *entry;
    DIR *dir = opendir(parent);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX], step[JOBID_SIZE];
        uint64_t job;
        if (!is_job_directory(entry->d_name, &job) || (!search->all && job != search->job) ||
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= (int)sizeof path)
            continue;
        jobid_write(job, step);
        search->visit(search->arg, path, step);
    }
    if (dir != NULL)
        closedir(dir);
}

/* That of the broker that Flux's commands here would speak to; else a system instance's. */
static void find_rundir(char *rundir, size_t cap)
{
    static const char scheme[] = "local://";
    const char *uri = getenv("FLUX_URI");
    if (uri == NULL || strncmp(uri, scheme, sizeof scheme - 1) != 0 || strrchr(uri, '/') == NULL)
        uri = "local:///run/flux/local";
    uri += sizeof scheme - 1;
    const char *end = strrchr(uri, '/');
    snprintf(rundir, cap, "%.*s", end != NULL ? (int)(end - uri) : 0, uri);
}

static void flux_each(const char *step, place_visit_fn *visit, void *arg, char *where, size_t cap)
{
    struct search search = {.all = step == NULL, .visit = visit, .arg = arg};
    const char *tmpdir = getenv("TMPDIR");
    char rundir[PATH_MAX], name[JOBID_SIZE];
    where[0] = '\0';
    if (step != NULL && !jobid_parse(step, &search.job))
        return;
    if (step != NULL) {
        jobid_write(search.job, name);
        visit(arg, NULL, name);
    }
    find_rundir(rundir, sizeof rundir);
    if (tmpdir == NULL || tmpdir[0] != '/')
        tmpdir = "/tmp";
    look_in(&search, rundir);
    look_in(&search, tmpdir);
    if (strcmp(tmpdir, "/tmp") != 0)
        look_in(&search, "/tmp");
    snprintf(where, cap, "%.200s/jobtmp-*", rundir);
}

static bool is_job(const char *name)
{
    uint64_t job;
    return jobid_parse(name, &job);
}

const struct place flux_place = {.each = flux_each, .is_job = is_job};
