/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what a step has left of its counts. */
#include "common/status/kept.h"

#include "common/launch/boot.h"
#include "common/status/fields.h"
#include "common/status/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MAX = 1 << 20 /* bytes; a server writes some KB */ };

/* Whether it is what a server leaves, and no file of something else. */
static bool is_kept(json_object *o)
{
    return json_object_get_boolean(field(o, "ended", json_type_boolean)) &&
           field_length(field_list(o, "nodes")) > 0 && field_list(o, "silent") != NULL;
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
    json_object *o = n == st.st_size ? field_parse(text) : NULL;
    free(text);
    if (n < 0 || is_kept(o))
        return o;
    json_object_put(o);
    errno = EINVAL;
    return NULL;
}

/* @return a descriptor, or -1 with errno set; ENOENT: nothing was kept */
static int open_kept(const char *step, const char *home, char path[static PATH_MAX])
{
    const char *const places[][2] = {{getenv(BOOT_STATS_DIR_ENV), ""}, {home, "/" BOOT_KEPT}};
    for (int i = 0; i < 2; i++) {
        if (places[i][0] == NULL || places[i][0][0] == '\0')
            continue;
        snprintf(path, PATH_MAX, "%s%s/muster.%s.stats.json", places[i][0], places[i][1], step);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 || errno != ENOENT)
            return fd;
    }
    errno = ENOENT;
    return -1;
}

json_object *kept_read(const char *step, uid_t uid, uid_t *owner, struct err *err)
{
    char path[PATH_MAX], home[PATH_MAX];
    uid = uid != (uid_t)-1 ? uid : geteuid();
    /* root's HOME may be another user's, whose files may lead anywhere */
    bool named = strchr(step, '/') != NULL, own = uid == geteuid() && uid != 0;
    const struct passwd *user = own ? NULL : getpwuid(uid);
    const char *dir = own ? getenv("HOME") : user != NULL ? user->pw_dir : NULL;
    snprintf(home, sizeof home, "%s", dir != NULL ? dir : "");
    if (owner_become(uid, 0, err) != 0)
        return NULL;
    snprintf(path, sizeof path, "%s", step);
    int fd = named ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                   : open_kept(step, home, path);
    if (fd < 0 && !named && errno == ENOENT)
        return NULL;
    json_object *o = fd >= 0 ? read_file(fd, owner) : NULL;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (o == NULL)
        err_set(err, "%s: %s", path,
                saved == EINVAL ? "these are no counts of a step" : strerror(saved));
    return o;
}
