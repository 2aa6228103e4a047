/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Slurm's cgroups of version 2, as its plugin makes them:
 *
 *     SCOPE/system or SCOPE/slurmd       what is no step's: one of both is there
 *     SCOPE/JOB/step_N/slurm             slurmstepd, and what it forks
 *     SCOPE/JOB/step_N/user/task_M       tasks
 */
#include "plugins/slurm/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The rest of the first line of a file that begins so. */
static bool line_of(const char *file, const char *begin, char *rest, size_t cap)
{
    FILE *in = fopen(file, "re");
    char line[PATH_MAX];
    bool found = false;
    while (in && !found && fgets(line, sizeof(line), in)) {
        found = strncmp(line, begin, strlen(begin)) == 0;
        if (found)
            snprintf(rest, cap, "%.*s", (int)strcspn(line + strlen(begin), "\n"),
                     line + strlen(begin));
    }
    if (in)
        fclose(in);
    return found;
}

/* Where a cgroup of the hierarchy of version 2 is seen: one mount may lie over another. */
static bool find_dir(const char *cgroup, char *dir, size_t cap)
{
    FILE *in = setmntent("/proc/self/mounts", "re");
    struct mntent *entry;
    bool found = false;
    while (in && !found && (entry = getmntent(in))) {
        if (strcmp(entry->mnt_type, "cgroup2") != 0)
            continue;
        snprintf(dir, cap, "%s%s", entry->mnt_dir, cgroup);
        found = access(dir, F_OK) == 0;
    }
    if (in)
        endmntent(in);
    return found;
}

/* Cuts the last name off. @return it, or NULL */
static const char *cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    return slash + 1;
}

bool cgroup_scope(char *path)
{
    const char *name = cut(path);
    if (!name || strcmp(name, "slurm") != 0)
        return false;
    name = cut(path);
    if (!name || strncmp(name, "step_", 5) != 0)
        return false;
    name = cut(path);
    return name && *name != '\0';
}

static bool move_to(const char *scope, const char *leaf, const char *pid)
{
    char path[3 * PATH_MAX];
    int fd, saved;
    snprintf(path, sizeof(path), "%s/%s/cgroup.procs", scope, leaf);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    bool moved = fd >= 0 && write(fd, pid, strlen(pid)) == (ssize_t)strlen(pid);
    saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return moved || errno == ESRCH; /* it has ended, which is told otherwise */
}

int cgroup_leave_step(pid_t pid, struct err *err)
{
    char cgroup[PATH_MAX], scope[2 * PATH_MAX], number[32];
    if (!line_of("/proc/self/cgroup", "0::", cgroup, sizeof(cgroup)) || !cgroup_scope(cgroup))
        return 0;
    if (!find_dir(cgroup, scope, sizeof(scope)))
        return err_set(err, "the cgroup %s of steps is not seen in any hierarchy of version 2",
                       cgroup);
    snprintf(number, sizeof(number), "%d", (int)pid);
    if (move_to(scope, "system", number) || move_to(scope, "slurmd", number))
        return 0;
    return err_set(err, "muster-server cannot be moved to a cgroup of %s that is no step's: %s",
                   scope, strerror(errno));
}
