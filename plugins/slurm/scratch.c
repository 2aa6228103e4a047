/** @file
 * The server's temporary directory, made and removed by the plugin.
 *
 * Root works in a directory that all may write, on a directory that a user owns, so: nothing is
 * looked up twice, links are never followed, and the tree is walked by a child that has become the
 * user, who can do no harm with it that the user cannot do anyway.
 */
#include "plugins/slurm/scratch.h"

#include "common/util/clock.h"
#include "common/util/empty_dir.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REMOVE_MS = 5000, /* for the child that removes a tree */
    NAME_TRIES = 100,
};

/* Opens the directory if nobody but its owner can take our entry in it away. */
static int open_parent(const char *key, const char *tmpfs, const struct identity *user,
                       struct err *err)
{
    int fd = open(tmpfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        err_set(err, "cannot open the directory %s=%s: %s", key, tmpfs, strerror(errno));
    } else if (user->drop && (st.st_uid != 0 || ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
                                                 (st.st_mode & S_ISVTX) == 0))) {
        err_set(err,
                "%s=%s belongs to uid %u and has mode %04o: it has to be root's and, where "
                "others may write, sticky (mode 1777)",
                key, tmpfs, st.st_uid, st.st_mode & 07777);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Makes a directory of a name that nobody can foresee, "muster.4711.0.xxxxxxxx". */
static int make_dir(int parent, const char *label, char *name, size_t cap)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        uint32_t random;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
            return -1;
        snprintf(name, cap, "muster.%s.%08x", label, random);
        if (mkdirat(parent, name, 0700) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Opens what we made and gives it to the user by descriptor: what the name means by now does not
 * matter. */
static int give_dir(int parent, const char *name, const struct identity *user)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || fchmod(fd, 0700) < 0 ||
        (user->drop && fchown(fd, user->uid, user->gid) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int scratch_make(struct scratch *scratch, const char *key, const char *tmpfs, const char *label,
                 const struct identity *user, struct err *err)
{
    char name[128];

    scratch->path = NULL;
    scratch->dir = -1;
    scratch->parent = open_parent(key, tmpfs, user, err);
    if (scratch->parent < 0)
        return -1;
    if (make_dir(scratch->parent, label, name, sizeof(name)) < 0) {
        err_set(err, "cannot make a directory in %s=%s: %s", key, tmpfs, strerror(errno));
        close(scratch->parent);
        return -1;
    }
    scratch->dir = give_dir(scratch->parent, name, user);
    if (scratch->dir < 0 || asprintf(&scratch->path, "%s/%s", tmpfs, name) < 0) {
        err_set(err, "cannot give %s/%s to uid %u: %s", tmpfs, name, user->uid, strerror(errno));
        scratch->path = NULL;
        unlinkat(scratch->parent, name, AT_REMOVEDIR);
        if (scratch->dir >= 0)
            close(scratch->dir);
        close(scratch->parent);
        return -1;
    }
    return 0;
}

/* Waits for a child of ours, by force in the end. */
static void wait_bounded(pid_t pid)
{
    int64_t deadline = now_ms() + REMOVE_MS;
    struct timespec nap = {.tv_nsec = 1000000};

    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (deadline_left(deadline) == 0) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return;
        }
        nanosleep(&nap, NULL);
    }
}

void scratch_remove(struct scratch *scratch, const struct identity *user)
{
    const char *name;
    pid_t pid;

    if (!scratch->path)
        return;
    name = strrchr(scratch->path, '/') + 1;
    /* Most servers leave it empty, or took it along. */
    if (unlinkat(scratch->parent, name, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY) {
        pid = fork();
        if (pid == 0) {
            if (identity_become(user) == 0)
                empty_dir(scratch->dir);
            _exit(0);
        }
        if (pid > 0)
            wait_bounded(pid);
        if (unlinkat(scratch->parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            log_warning("cannot remove %s: %s", scratch->path, strerror(errno));
    }
    close(scratch->dir);
    close(scratch->parent);
    free(scratch->path);
    scratch->path = NULL;
}
