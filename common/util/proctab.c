/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads /proc/PID/stat of each process: "4711 (name) S 4710 ...". A name may have any bytes, so
 * what follows its last parenthesis counts.
 */
#include "common/util/proctab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXITING = 0x4 /* PF_EXITING */ };
enum { DEPTH_MAX = 1000 /* of parents: the table is no snapshot, and might have a circle */ };

static bool read_entry(int proc, const char *name, struct proctab_entry *entry)
{
    char path[64], text[512];
    int parent;
    snprintf(path, sizeof path, "%.32s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *rest = strrchr(text, ')');
    if (rest == NULL || sscanf(rest, ") %c %d", &entry->state, &parent) != 2)
        return false;
    entry->pid = atoi(name);
    entry->parent = parent;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t one = ((const struct proctab_entry *)a)->pid,
          two = ((const struct proctab_entry *)b)->pid;
    return (one > two) - (one < two);
}

int proctab_read(struct proctab *tab)
{
    const struct dirent *entry;
    size_t cap = 0;
    bool failed = false;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return -1;
    *tab = (struct proctab){0};
    while (!failed && (entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (tab->n == cap) {
            cap = cap == 0 ? 256 : 2 * cap;
            struct proctab_entry *more = realloc(tab->v, cap * sizeof *more);
            failed = more == NULL;
            tab->v = failed ? tab->v : more;
        }
        if (!failed)
            tab->n += read_entry(dirfd(proc), entry->d_name, &tab->v[tab->n]);
    }
    closedir(proc);
    if (failed)
        proctab_free(tab);
    else if (tab->n > 0)
        qsort(tab->v, tab->n, sizeof *tab->v, by_pid);
    return failed ? -1 : 0;
}

const struct proctab_entry *proctab_find(const struct proctab *tab, pid_t pid)
{
    const struct proctab_entry key = {.pid = pid};
    return tab->n > 0 ? bsearch(&key, tab->v, tab->n, sizeof key, by_pid) : NULL;
}

bool proctab_is_below(const struct proctab *tab, pid_t pid, pid_t root)
{
    for (int depth = 0; pid > 0 && depth < DEPTH_MAX; depth++) {
        if (pid == root)
            return true;
        const struct proctab_entry *entry = proctab_find(tab, pid);
        pid = entry != NULL ? entry->parent : 0;
    }
    return false;
}

bool proctab_is_ending(pid_t pid)
{
    char path[64], line[512], state;
    unsigned flags;
    if (pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return errno == ENOENT && kill(pid, 0) != 0 && errno == ESRCH;
    const char *rest = fgets(line, sizeof line, in) != NULL ? strrchr(line, ')') : NULL;
    fclose(in);
    return rest != NULL && sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
           (state == 'Z' || state == 'X' || (flags & EXITING) != 0);
}

void proctab_free(struct proctab *tab)
{
    free(tab->v);
    *tab = (struct proctab){0};
}
