/* SPDX-License-Identifier: BSD-3-Clause */
/* musterrun's nodes are all on this machine: each has a /tmp of its own in musterrun.XXXXXX, which
 * is in TMPDIR or /tmp. */
#include "shims/standin/place.h"

#include "common/status/find.h"
#include "common/status/reach.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DIGITS_MAX = 20 };

static bool has_server(DIR *dir)
{
    const struct dirent *entry;
    bool found = false;
    while (!found && (entry = readdir(dir)) != NULL)
        found = strncmp(entry->d_name, "muster.", strlen("muster.")) == 0;
    return found;
}

/* Visits the first node's directory in which a server has its own: the servers of the other nodes
 * are of the same run, and that server asks them. */
static void look_at_nodes(const char *parent, const char *step, place_visit_fn *visit, void *arg)
{
    bool found = false;
    for (unsigned i = 0; !found; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/node%u/tmp", parent, i) >= (int)sizeof path)
            return;
        DIR *dir = opendir(path);
        if (dir == NULL) /* there are no more */
            return;
        found = has_server(dir);
        closedir(dir);
        if (found)
            visit(arg, path, step);
    }
}

static void look_at_runs(const char *parent, const char *step, place_visit_fn *visit, void *arg)
{
    const struct dirent *entry;
    DIR *dir = opendir(parent);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "musterrun.", strlen("musterrun.")) == 0 &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path)
            look_at_nodes(path, step, visit, arg);
    }
    if (dir != NULL)
        closedir(dir);
}

/* A number alone stands for its first step, as under Slurm. @return whether it is one */
static bool name_first(const char *step, char first[static DIGITS_MAX + sizeof ".0"])
{
    size_t len = strlen(step);
    if (len == 0 || len > DIGITS_MAX || strspn(step, "0123456789") != len)
        return false;
    snprintf(first, DIGITS_MAX + sizeof ".0", "%s.0", step);
    return true;
}

static void standin_each(const char *step, place_visit_fn *visit, void *arg, char *where,
                         size_t cap)
{
    const char *tmpdir = getenv("TMPDIR");
    char first[DIGITS_MAX + sizeof ".0"];
    (void)cap;
    where[0] = '\0';
    if (step != NULL && name_first(step, first))
        step = first;
    if (tmpdir != NULL && tmpdir[0] == '/' && strcmp(tmpdir, "/tmp") != 0)
        look_at_runs(tmpdir, step, visit, arg);
    look_at_runs("/tmp", step, visit, arg);
}

/* @return whether the step has a server's directory there */
static bool has_server_of(const char *path, const char *step)
{
    const struct dirent *entry;
    size_t len = strlen(step);
    bool found = false;
    DIR *dir = opendir(path);
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
        found = strncmp(entry->d_name, "muster.", strlen("muster.")) == 0 &&
                strncmp(entry->d_name + strlen("muster."), step, len) == 0 &&
                entry->d_name[strlen("muster.") + len] == '.';
    if (dir != NULL)
        closedir(dir);
    return found;
}

/* Each node of a run, if it is the step's and of a user that counts. */
static int reach_run(const char *run, const char *step, struct reach *reach, struct err *err)
{
    struct stat st;
    if (lstat(run, &st) != 0 || !S_ISDIR(st.st_mode) ||
        (reach->uid != (uid_t)-1 && st.st_uid != reach->uid))
        return 0;
    for (unsigned i = 0;; i++) {
        char path[PATH_MAX], name[32];
        struct stat node;
        snprintf(name, sizeof name, "node%u", i);
        if (snprintf(path, sizeof path, "%s/%s/tmp", run, name) >= (int)sizeof path ||
            stat(path, &node) != 0)
            return 0;
        if (!has_server_of(path, step))
            continue;
        char **nodes = reach_word(NULL, name);
        reach->owner = st.st_uid;
        if (nodes == NULL || reach_add(reach, NULL, path, step, NULL, nodes, err) != 0)
            return err_set(err, "out of memory");
    }
}

static int reach_runs(const char *parent, const char *step, struct reach *reach, struct err *err)
{
    const struct dirent *entry;
    int rc = 0;
    DIR *dir = opendir(parent);
    while (dir != NULL && rc == 0 && reach->n == 0 && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "musterrun.", strlen("musterrun.")) == 0 &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path)
            rc = reach_run(path, step, reach, err);
    }
    if (dir != NULL)
        closedir(dir);
    return rc;
}

static int standin_reach(const char *step, struct reach *reach, struct err *err)
{
    const char *tmpdir = getenv("TMPDIR");
    char first[DIGITS_MAX + sizeof ".0"];
    int rc = 0;
    if (!find_is_step(step))
        return 0;
    if (name_first(step, first))
        step = first;
    if (tmpdir != NULL && tmpdir[0] == '/' && strcmp(tmpdir, "/tmp") != 0)
        rc = reach_runs(tmpdir, step, reach, err);
    return rc != 0 || reach->n > 0 ? rc : reach_runs("/tmp", step, reach, err);
}

const struct place standin_place = {.each = standin_each, .reach = standin_reach};
