/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel puts a word behind the name of a program that has been replaced, or removed. srun may
 * wait for hours for its processors, and be replaced meanwhile. */
#include "plugins/slurm/own_program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELF "/proc/self/exe" /* leads to the file that we run, also without a name */
#define GONE " (deleted)"

int own_program(char *path, size_t cap)
{
    struct stat own, now;
    ssize_t n = readlink(SELF, path, cap - 1);
    if (n <= 0)
        return n < 0 ? errno : ENOENT;
    path[n] = '\0';
    size_t len = (size_t)n, gone = strlen(GONE);
    if (len <= gone || strcmp(path + len - gone, GONE) != 0 || stat(path, &now) == 0)
        return 0;
    path[len - gone] = '\0';
    /* The program's owner may replace it. */
    if (stat(SELF, &own) != 0 || stat(path, &now) != 0 || !S_ISREG(now.st_mode) ||
        (now.st_uid != own.st_uid && now.st_uid != 0))
        path[len - gone] = ' ';
    return 0;
}
