/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A program that uses PMIx maps libpmix, and a shell does not.
 */
#include "common/status/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 8192 };

static bool maps_libpmix(pid_t pid)
{
    char path[32], *line = NULL;
    size_t cap = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *in = fopen(path, "re");
    while (in != NULL && !found && getline(&line, &cap, in) >= 0 && cap <= LINE_MAX_BYTES)
        found = strstr(line, "/libpmix.so") != NULL;
    if (in != NULL)
        fclose(in);
    free(line);
    return found;
}

/* @return the only child, or 0: there is none, or several */
static pid_t only_child(const struct proctab *tab, pid_t pid)
{
    pid_t child = 0;
    for (size_t i = 0; i < tab->n; i++)
        if (tab->v[i].parent == pid) {
            if (child != 0)
                return 0;
            child = tab->v[i].pid;
        }
    return child;
}

pid_t process_of_task(const struct proctab *tab, pid_t pid)
{
    if (maps_libpmix(pid))
        return pid;
    for (size_t i = 0; i < tab->n; i++)
        if (tab->v[i].pid != pid && proctab_is_below(tab, tab->v[i].pid, pid) &&
            maps_libpmix(tab->v[i].pid))
            return tab->v[i].pid;
    for (pid_t child; (child = only_child(tab, pid)) != 0;)
        pid = child;
    return pid;
}
