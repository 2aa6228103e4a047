/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The settings file itself: whether it may be trusted, and what is in it.
 *
 * All checks are made on the open file, so that it cannot be exchanged between check and use.
 */
#include "common/conf/conf_file.h"
#include "common/conf/conf_text.h"
#include "common/util/io_all.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: a FIFO or device in the file's place must not hold us up before it is refused. */
static int open_file(const char *path, uid_t trusted_uid, int *fd, struct err *err)
{
    const char *name = conf_text_short_name(path);
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd >= 0)
        return 0;
    if (errno == ENOENT && lstat(path, &st) < 0 && errno == ENOENT) {
        if (trusted_uid == 0)
            return 0; /* the installed one: the defaults */
        return err_set(err, "%s: there is no such file; give the whole path of one that is there",
                       name);
    }
    if (errno == ENOENT || errno == 0)
        return err_set(err, "%s: a symbolic link that leads nowhere; correct or remove it", name);
    if (errno == EACCES)
        return err_set(err,
                       "%s: not readable for uid %u; chmod a+r the file and a+x its directories",
                       name, (unsigned)geteuid());
    return err_set(err, "%s: cannot be opened: %s; correct or remove it", name, strerror(errno));
}

static int check_file(const char *path, int fd, uid_t trusted_uid, struct err *err)
{
    const char *name = conf_text_short_name(path);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, "%s: cannot be examined: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, "%s: %s, not a regular file; put a file in its place or remove it",
                       name, S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    if (st.st_uid != 0 && st.st_uid != trusted_uid && trusted_uid == 0)
        return err_set(err, "%s: belongs to uid %u, must belong to root; chown it to root", name,
                       (unsigned)st.st_uid);
    if (st.st_uid != 0 && st.st_uid != trusted_uid)
        return err_set(err, "%s: belongs to uid %u, must belong to root or uid %u; chown it", name,
                       (unsigned)st.st_uid, (unsigned)trusted_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, "%s: group or others may write it (mode %04o); chmod go-w it", name,
                       (unsigned)(st.st_mode & 07777));
    return 0;
}

static int read_fd(const char *path, int fd, char **text, size_t *len, struct err *err)
{
    const char *name = conf_text_short_name(path);
    size_t size = CONF_FILE_MAX + 1; /* one more, so that its reader sees a file too large */
    *text = malloc(size);
    if (!*text)
        return err_set(err, "%s: out of memory", name);
    ssize_t n = read_all(fd, *text, size);
    if (n >= 0) {
        *len = (size_t)n;
        return 0;
    }
    free(*text);
    *text = NULL;
    return err_set(err, "%s: cannot be read: %s", name, strerror(errno));
}

int conf_file_read(const char *path, uid_t trusted_uid, char **text, size_t *len, struct err *err)
{
    int fd, rc;
    *text = NULL;
    *len = 0;
    if (open_file(path, trusted_uid, &fd, err) < 0)
        return -1;
    if (fd < 0)
        return 0;
    rc = check_file(path, fd, trusted_uid, err);
    if (rc == 0)
        rc = read_fd(path, fd, text, len, err);
    close(fd);
    return rc;
}

static int find_tmpdir(const struct conf_text *t, char *tmpdir, struct err *err)
{
    struct conf_key key = {0};
    while (conf_text_next_key(t, &key)) {
        if (key.depth != 1 || key.len != strlen("tmpdir") || memcmp(key.name, "tmpdir", key.len))
            continue;
        if (!conf_text_path(t, key.value, tmpdir))
            return conf_text_fail_key(
                t, key.at, "tmpdir", err,
                "give an absolute path of at most %d bytes without backslash, for "
                "example \"tmpdir\": \"/tmp\"",
                CONF_PATH_SIZE - 1);
    }
    return 0;
}

int conf_file_tmpdir(const char *path, uid_t trusted_uid, char tmpdir[static CONF_PATH_SIZE],
                     struct err *err)
{
    struct conf_text t;
    size_t len;
    char *text;
    memset(tmpdir, 0, CONF_PATH_SIZE);
    int rc = conf_file_read(path, trusted_uid, &text, &len, err);
    if (rc == 0 && text)
        rc = conf_text_open(&t, path, text, len, err);
    if (rc == 0 && text) {
        rc = find_tmpdir(&t, tmpdir, err);
        conf_text_close(&t);
    }
    free(text);
    return rc;
}
