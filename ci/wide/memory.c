/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process has of memory, from /proc. */
#include "ci/wide/wide.h"

#include <stdio.h>
#include <string.h>

/* @return the sum of the numbers behind the names that begin with @p name */
static long read_sum(pid_t pid, const char *file, const char *name)
{
    char path[64], line[256];
    long sum = 0, value;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *in = fopen(path, "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, name, strlen(name)) == 0 && colon != NULL &&
            sscanf(colon + 1, "%ld", &value) == 1)
            sum += value;
    }
    if (in != NULL)
        fclose(in);
    return sum;
}

struct memory memory_of(pid_t pid)
{
    return (struct memory){.peak = read_sum(pid, "status", "VmHWM"),
                           .now = read_sum(pid, "status", "VmRSS"),
                           .own = read_sum(pid, "smaps_rollup", "Private_")};
}

void memory_reset(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return;
    fputs("5", out); /* proc(5): the peak of the resident set */
    fclose(out);
}
