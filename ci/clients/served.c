/* SPDX-License-Identifier: BSD-3-Clause */
/* From /proc, whose texts proc(5) describes. */
#include "served.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 300, LINE_SIZE = 256 };

/* @return the number behind @p word at the begin of a line of a file, or 0 */
static uint64_t number_in_file(const char *path, const char *word)
{
    char line[LINE_SIZE];
    uint64_t found = 0;
    FILE *in = fopen(path, "re");
    while (in != NULL && found == 0 && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            found = strtoull(line + strlen(word), NULL, 10);
    if (in != NULL)
        fclose(in);
    return found;
}

static void add_thread(struct served *sum, const char *task)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/schedstat", task);
    sum->cpu_ns += number_in_file(path, "");
    snprintf(path, sizeof path, "%s/status", task);
    sum->wakes += number_in_file(path, "voluntary_ctxt_switches:");
}

static void add_process(struct served *sum, const char *pid)
{
    char path[PATH_SIZE], task[PATH_SIZE];
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%.16s/smaps_rollup", pid);
    sum->own_kb += number_in_file(path, "Pss:");
    snprintf(path, sizeof path, "/proc/%.16s/task", pid);
    DIR *tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        snprintf(task, sizeof task, "%.32s/%.16s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            add_thread(sum, task);
    }
    if (tasks != NULL)
        closedir(tasks);
}

/* Nodes of one machine have host names of their own. */
static bool is_here(const char *pid)
{
    char path[PATH_SIZE], own[LINE_SIZE] = "", theirs[LINE_SIZE] = "";
    snprintf(path, sizeof path, "/proc/%.16s/ns/uts", pid);
    return readlink("/proc/self/ns/uts", own, sizeof own - 1) > 0 &&
           readlink(path, theirs, sizeof theirs - 1) > 0 && strcmp(own, theirs) == 0;
}

static bool serves(const char *pid)
{
    char path[PATH_SIZE], name[LINE_SIZE] = "";
    if (atoi(pid) == getppid())
        return true;
    if (!is_here(pid))
        return false;
    snprintf(path, sizeof path, "/proc/%.16s/comm", pid);
    FILE *in = fopen(path, "re");
    bool is =
        in != NULL && fgets(name, sizeof name, in) != NULL && strcmp(name, "muster-server\n") == 0;
    if (in != NULL)
        fclose(in);
    return is;
}

struct served served_now(void)
{
    struct served sum = {0};
    struct dirent *entry;
    DIR *proc = opendir("/proc");
    while (proc != NULL && (entry = readdir(proc)) != NULL)
        if (atoi(entry->d_name) > 0 && serves(entry->d_name))
            add_process(&sum, entry->d_name);
    if (proc != NULL)
        closedir(proc);
    return sum;
}
