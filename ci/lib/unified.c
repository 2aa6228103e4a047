/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD in Slurm's daemons, on a machine that has hierarchies of both versions of cgroups:
 * in /proc/PID/cgroup they read the line of version 2 alone. Slurm's plugin for version 2 refuses
 * the others, which the kernel names whether they are mounted or not. */
#undef _FILE_OFFSET_BITS /* else open() is another name of open64() */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int open_fn(const char *path, int flags, ...);

static int is_cgroup(const char *path)
{
    const char *end = strrchr(path, '/');
    return strncmp(path, "/proc/", 6) == 0 && end != NULL && strcmp(end, "/cgroup") == 0;
}

/* @return a file with the one line, or -1 */
static int unified(const char *path)
{
    char line[4096];
    FILE *in = fopen(path, "re");
    int fd = in != NULL ? memfd_create("cgroup", MFD_CLOEXEC) : -1;
    while (fd >= 0 && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, "0::", 3) == 0 && write(fd, line, strlen(line)) < 0)
            break;
    if (in != NULL)
        fclose(in);
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static int open_or_make(const char *name, const char *path, int flags, mode_t mode)
{
    open_fn *next = (open_fn *)dlsym(RTLD_NEXT, name);
    return is_cgroup(path) ? unified(path) : next(path, flags, mode);
}

#define WRAP(name)                                                                                 \
    __attribute__((visibility("default"))) int name(const char *path, int flags, ...)              \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;           \
        va_end(args);                                                                              \
        return open_or_make(#name, path, flags, mode);                                             \
    }

WRAP(open)
WRAP(open64)
