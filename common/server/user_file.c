/* SPDX-License-Identifier: BSD-3-Clause */
/* Files for the step's user. */
#include "common/server/user_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THIN_MAX = 4096, /* files that are looked at in one go */ DAY_S = 86400 };

struct old {
    char name[256];
    time_t changed;
};

int user_file_make(const char *dir, const char *name)
{
    errno = EINVAL;
    int at = dir[0] == '/' ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (at < 0)
        return -1;
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    close(at);
    errno = saved;
    return fd;
}

int user_dir_make(const char *home, const char *below, char *path, size_t cap)
{
    struct stat st;
    if (stat(home, &st) != 0)
        return -1;
    errno = EPERM;
    if (st.st_uid != geteuid())
        return -1;
    errno = ENAMETOOLONG;
    if (home[0] != '/' || (size_t)snprintf(path, cap, "%s/%s", home, below) >= cap)
        return -1;
    for (char *end = path + strlen(home) + 1; (end = strchr(end, '/')) != NULL; end++) {
        *end = '\0';
        int rc = mkdir(path, 0700);
        *end = '/';
        if (rc != 0 && errno != EEXIST)
            return -1;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int by_age(const void *a, const void *b)
{
    const struct old *one = a, *two = b;
    return (one->changed < two->changed) - (one->changed > two->changed);
}

void user_dir_thin(int dir, const char *pattern, size_t max, int days)
{
    struct old *files = calloc(THIN_MAX, sizeof *files);
    DIR *all = fdopendir(dir);
    size_t n = 0;
    time_t now = 0; /* of the file system: its newest file has just been written */
    struct stat st;
    for (struct dirent *entry; n < THIN_MAX && all != NULL && (entry = readdir(all)) != NULL;) {
        if (fnmatch(pattern, entry->d_name, 0) != 0 ||
            fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        snprintf(files[n].name, sizeof files[n].name, "%s", entry->d_name);
        files[n++].changed = st.st_mtime;
        now = st.st_mtime > now ? st.st_mtime : now;
    }
    if (n > 0)
        qsort(files, n, sizeof *files, by_age);
    for (size_t i = 0; i < n; i++)
        if (i >= max || now - files[i].changed > (time_t)days * DAY_S)
            unlinkat(dir, files[i].name, 0);
    if (all != NULL)
        closedir(all);
    else
        close(dir);
    free(files);
}
