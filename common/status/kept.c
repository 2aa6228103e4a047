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

/* Whether it is what a server leaves, and no file of something else. */
static bool is_kept(json_object *o)
{
    json_object *ended = NULL, *nodes = NULL;
    return json_object_is_type(o, json_type_object) &&
           json_object_object_get_ex(o, "ended", &ended) && json_object_get_boolean(ended) &&
           json_object_object_get_ex(o, "nodes", &nodes) &&
           json_object_is_type(nodes, json_type_array) && json_object_array_length(nodes) > 0 &&
           json_object_object_get_ex(o, "silent", &nodes) &&
           json_object_is_type(nodes, json_type_array);
}

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
    free(text);
    if (n < 0 || is_kept(o))
        return o;
    json_object_put(o);
    errno = EINVAL;
    return NULL;
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
