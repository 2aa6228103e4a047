/* SPDX-License-Identifier: BSD-3-Clause */
/* musterrun's nodes are all on this machine: each has a /tmp of its own in musterrun.XXXXXX, which
 * is in TMPDIR or /tmp. */
#include "shims/standin/place.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void standin_each(const char *step, place_visit_fn *visit, void *arg, char *where,
                         size_t cap)
{
    const char *tmpdir = getenv("TMPDIR");
    char first[DIGITS_MAX + sizeof ".0"];
    size_t len = step != NULL ? strlen(step) : 0;
    (void)cap;
    where[0] = '\0';
    if (len > 0 && len <= DIGITS_MAX && strspn(step, "0123456789") == len) {
        snprintf(first, sizeof first, "%s.0", step); /* as under Slurm */
        step = first;
    }
    if (tmpdir != NULL && tmpdir[0] == '/' && strcmp(tmpdir, "/tmp") != 0)
        look_at_runs(tmpdir, step, visit, arg);
    look_at_runs("/tmp", step, visit, arg);
}

const struct place standin_place = {.each = standin_each};
