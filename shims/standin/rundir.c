/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The directory of one musterrun.
 */
#include "shims/standin/rundir.h"

#include "common/util/empty_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The longest path below the directory is the name of a node's own socket, and it has to fit into
 * the address of a Unix socket: DIR/node999/node999_4194304.0 */
enum { TMPDIR_MAX = 50 };

/* Only what is our own: root may have been given the TMPDIR of another user. */
static void remove_tree(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid())
        empty_dir(fd);
    else if (fd >= 0)
        close(fd);
    rmdir(path);
}

bool rundir_each(const char *tmp, uid_t owner, rundir_fn *fn, void *arg)
{
    DIR *dir = opendir(tmp);
    struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir))) {
        char path[512];
        struct stat st;
        if (strncmp(entry->d_name, "musterrun.", 10) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", tmp, entry->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner &&
            (st.st_mode & 077) == 0)
            found = fn(path, arg);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Only a lock of our own says that a directory is a run's; others in /tmp may have any name. */
static bool sweep(const char *path, void *arg)
{
    char lock[520];
    (void)arg;
    snprintf(lock, sizeof(lock), "%s/lock", path);
    int fd = open(lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        remove_tree(path);
    close(fd);
    return false;
}

/* Seen by other runs only once it is locked. Each process that inherits its descriptor, which
 * is never closed, holds the lock. */
static int make_locked(struct standin_step *step, const char *tmp)
{
    char birth[sizeof(step->dir)], lock[sizeof(step->dir) + 8];
    snprintf(birth, sizeof(birth), "%s/.musterrun.XXXXXX", tmp);
    if (!mkdtemp(birth))
        return -1;
    snprintf(lock, sizeof(lock), "%s/lock", birth);
    snprintf(step->dir, sizeof(step->dir), "%s/%s", tmp, strrchr(birth, '/') + 2);
    int fd = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(birth, step->dir) == 0)
        return 0;
    int why = errno;
    step->dir[0] = '\0';
    if (fd >= 0)
        close(fd);
    unlink(lock);
    rmdir(birth);
    errno = why;
    return -1;
}

static int make_nodes(const struct standin_step *step)
{
    for (uint32_t n = 0; n < step->nnodes; n++) {
        char path[sizeof(step->dir) + 80];
        snprintf(path, sizeof(path), "%s/%s", step->dir, step->nodes[n].name);
        if (mkdir(path, 0700) < 0)
            return -1;
        strcat(path, "/tmp");
        if (mkdir(path, 0700) < 0)
            return -1;
    }
    return 0;
}

int rundir_make(struct standin_step *step, struct err *err)
{
    if (step->joined)
        return 0;
    const char *tmp = getenv("TMPDIR");

    if (!tmp || tmp[0] != '/' || strlen(tmp) > TMPDIR_MAX)
        tmp = "/tmp"; /* the path of a Unix socket ends at 107 bytes */
    rundir_each(tmp, geteuid(), sweep, NULL);
    if (make_locked(step, tmp) < 0 || make_nodes(step) < 0) {
        err_set(err, "cannot make a directory in %s: %s", tmp, strerror(errno));
        if (step->dir[0] != '\0')
            rundir_remove(step);
        return -1;
    }
    return 0;
}

void rundir_remove(const struct standin_step *step)
{
    if (!step->joined)
        remove_tree(step->dir);
}

void rundir_remove_node(const struct standin_step *step, const struct standin_node *node)
{
    char path[sizeof(step->dir) + 80];
    if (step->joined)
        return;
    snprintf(path, sizeof(path), "%s/%s", step->dir, node->name);
    remove_tree(path);
    for (uint32_t n = 0; n < step->nnodes; n++) {
        snprintf(path, sizeof(path), "%s/%s", step->dir, step->nodes[n].name);
        if (access(path, F_OK) == 0)
            return; /* its own process is still there, or the lock tells that it is not */
    }
    remove_tree(step->dir);
}
