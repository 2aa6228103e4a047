/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what a step has left of its counts. */
#include "common/status/kept.h"

#include "common/launch/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MAX = 1 << 20 /* bytes; a server writes some KB */ };

/* @return what the file has, or NULL with errno set */
static json_object *read_file(int fd, uid_t *owner)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    errno = EINVAL;
    if (!S_ISREG(st.st_mode) || st.st_size > KEPT_MAX)
        return NULL;
    *owner = st.st_uid;
    char *text = calloc(1, (size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    json_object *o = n == st.st_size ? json_tokener_parse(text) : NULL;
    if (n >= 0 && o == NULL)
        errno = EINVAL;
    free(text);
    return o;
}

json_object *kept_read(const char *step, uid_t *owner, struct err *err)
{
    const char *dir = getenv(BOOT_STATS_DIR_ENV);
    char path[PATH_MAX];
    bool named = strchr(step, '/') != NULL;
    if (!named && (dir == NULL || dir[0] == '\0'))
        return NULL;
    if (named)
        snprintf(path, sizeof path, "%s", step);
    else
        snprintf(path, sizeof path, "%s/muster.%s.stats.json", dir, step);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && !named && errno == ENOENT)
        return NULL;
    json_object *o = fd >= 0 ? read_file(fd, owner) : NULL;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (o == NULL)
        err_set(err, "%s: %s", path,
                saved == EINVAL ? "this is no file of " BOOT_STATS_DIR_ENV : strerror(saved));
    return o;
}
