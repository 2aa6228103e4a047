/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Flux's job shells make the directories of jobs: jobtmp-SHELL-JOBID in the broker's rundir;
 * of users who may not write there in their TMPDIR, or /tmp. Unless muster's tmpdir is set, servers
 * have theirs in it. */
#include "plugins/flux/place.h"

#include "plugins/flux/jobid.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Has Flux's own command read a job id. @return its answer's length; 0: there is no such command
 * in PATH, or the text is no id */
static size_t run_flux(const char *text, char *answer, size_t cap)
{
    char *argv[] = {"flux", "job", "id", "--to=f58plain", "--", (char *)(uintptr_t)text, NULL};
    posix_spawn_file_actions_t files;
    extern char **environ;
    int out[2], status = -1;
    size_t len = 0;
    ssize_t n;
    pid_t pid;
    if (pipe2(out, O_CLOEXEC) != 0)
        return 0;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    while (rc == 0 && len < cap && (n = read(out[0], answer + len, cap - len)) > 0)
        len += (size_t)n;
    close(out[0]);
    if (rc == 0)
        waitpid(pid, &status, 0);
    return rc == 0 && status == 0 ? len : 0;
}

static bool flux_name(const char *text, char *name, size_t cap)
{
    static const char scheme[] = "flux.";
    char answer[JOBID_SIZE + 1], id[JOBID_SIZE];
    uint64_t job;
    if (strncmp(text, scheme, sizeof scheme - 1) == 0) /* a namespace */
        text += sizeof scheme - 1;
    if (!jobid_parse(text, &job)) {
        size_t len = may_be_flux_only(text) ? run_flux(text, answer, sizeof answer - 1) : 0;
        answer[len] = '\0';
        answer[strcspn(answer, "\n")] = '\0';
        if (!jobid_parse(answer, &job))
            return false;
    }
    jobid_write(job, id);
    return snprintf(name, cap, "%s", id) < (int)cap;
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
    if (step != NULL && (!flux_name(step, name, sizeof name) || !jobid_parse(name, &search.job)))
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

const struct place flux_place = {.each = flux_each, .name = flux_name};
