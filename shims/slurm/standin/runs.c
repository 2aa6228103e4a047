/* SPDX-License-Identifier: BSD-3-Clause */
/* What all jobs of a cluster share: asks the user's other runs for it, one after another. */
#include "shims/slurm/standin/runs.h"

#include "common/util/clock.h"
#include "shims/standin/rundir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ASK_MS = 6000 /* for all runs together: a caller of ours waits for longer */ };

struct search {
    const struct standin_step *step;
    int64_t until; /* ms: no further run is asked then */
    bool (*each)(struct search *search, const char *dir);
    FILE *out; /* of runs_list() */
    char *address;
    size_t cap;
    uint32_t node;
    const unsigned char *token;
    struct standin_credential *found;
};

static bool is_other(const char *dir, void *arg)
{
    struct search *search = arg;
    return strcmp(dir, search->step->dir) != 0 && deadline_left(search->until) > 0 &&
           search->each(search, dir);
}

static bool look(struct search *search)
{
    const char *dir = search->step->dir;
    char tmp[sizeof search->step->dir];
    snprintf(tmp, sizeof tmp, "%.*s", (int)(strrchr(dir, '/') - dir), dir);
    search->until = now_ms() + ASK_MS;
    return rundir_each(tmp, geteuid(), is_other, search);
}

/* Every run has a node0. */
static void slurmd_of(const char *dir, char *path, size_t cap)
{
    snprintf(path, cap, "%s/node0/slurmd", dir);
}

/* A run in another pid namespace may have our job's number, and is no part of our cluster. */
static bool list(struct search *search, const char *dir)
{
    char path[512], *text, *line, *rest;
    slurmd_of(dir, path, sizeof path);
    if (standin_ask_steps(path, &text) != 0)
        return false;
    for (rest = text; (line = strsep(&rest, "\n")) != NULL;)
        if (strtoul(line, NULL, 10) != search->step->job)
            fprintf(search->out, "\n%s", line);
    free(text);
    return false;
}

void runs_list(const struct standin_step *step, FILE *out)
{
    struct search search = {.step = step, .each = list, .out = out};
    look(&search);
}

static bool has_socket(struct search *search, const char *dir)
{
    const char *rest = search->address + strlen(search->step->dir);
    char path[512];
    struct stat st;
    if (snprintf(path, sizeof path, "%s%s", dir, rest) >= (int)search->cap ||
        lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    strcpy(search->address, path);
    return true;
}

bool runs_find_socket(const struct standin_step *step, char *address, size_t cap)
{
    struct search search = {.step = step, .each = has_socket, .address = address, .cap = cap};
    size_t len = strlen(step->dir);
    return strncmp(address, step->dir, len) == 0 && address[len] == '/' && look(&search);
}

static bool has_credential(struct search *search, const char *dir)
{
    char path[512];
    slurmd_of(dir, path, sizeof path);
    return standin_ask_run_credential(path, search->node, search->token, search->found) == 0;
}

int runs_read_credential(const struct standin_step *step, uint32_t node, const unsigned char *token,
                         struct standin_credential *found)
{
    struct search search = {
        .step = step, .each = has_credential, .node = node, .token = token, .found = found};
    return look(&search) ? 0 : EPERM;
}
