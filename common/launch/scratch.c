/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's temporary directory, made and removed by the plugin.
 *
 * Root works in a directory that all may write, on a directory that a user owns, so: nothing is
 * looked up twice, links are never followed, and the tree is walked by a child that has become the
 * user, who can do no harm with it that the user cannot do anyway.
 *
 * Each directory is locked as long as its launcher lives. A directory without a lock was left by
 * a step whose launcher and server were killed, and the next step on the node removes it, also
 * where each step has a place of its own, beside those of others. A process of its own does that,
 * because any user can make thousands of such directories by hand, and no step's start is to wait
 * for them.
 */
#include "common/launch/scratch.h"

#include "common/util/child.h"
#include "common/util/clock.h"
#include "common/util/empty_dir.h"
#include "common/util/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

enum {
    REMOVE_MS = 5000, /* for the child that removes a tree */
    KILLED_MS = 100,  /* for it to be gone once it was killed */
    SWEEP_MS = 500,   /* for all that others left */
    SWEEP_S = 2,      /* until a sweep that hangs is ended */
    NAME_TRIES = 100,
    LITTLE_KIB = 65536, /* by which a larger step may have ended */
    LEAST_KIB = 1024,   /* what libpmix shares with the tasks of a small step, about */
    LEAST_FILES = 32,
};

/* Opens the directory if only its owner can take our entry in it away. */
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
    } else if (user->drop && user->uid != st.st_uid && (st.st_mode & (S_IXGRP | S_IXOTH)) == 0) {
        err_set(err,
                "%s=%s has mode %04o, and users have to be able to search it: chmod 1777 it, or "
                "set tmpdir in " MUSTER_CONF_PATH " to a directory elsewhere",
                key, tmpfs, st.st_mode & 07777);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Waits for a child of ours, by force in the end. A user's own file system can hold it in the
 * kernel for ever; then it ends with us. */
static void wait_bounded(pid_t pid, int64_t deadline)
{
    struct timespec nap = {.tv_nsec = 1000000};
    bool killed = false;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (deadline_left(deadline) == 0 && killed) {
            log_warning("process %d, which removes a directory, hangs in the kernel", (int)pid);
            return;
        }
        if (deadline_left(deadline) == 0) {
            kill(pid, SIGKILL);
            killed = true;
            deadline = now_ms() + KILLED_MS;
        }
        nanosleep(&nap, NULL);
    }
}

/* Removes the entry and all below it, as the user. @return 0, or -1 with errno set */
static int remove_tree(int parent, const char *name, int dir, const struct identity *user,
                       int64_t deadline)
{
    /* Most servers leave it empty. */
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (identity_become(user) == 0)
            empty_dir(dir);
        _exit(0);
    }
    if (pid > 0)
        wait_bounded(pid, deadline);
    return unlinkat(parent, name, AT_REMOVEDIR);
}

/* Whether it is "muster.<label>.<8 hexadecimal digits>", as make_dir() names them. */
static bool is_ours(const char *name)
{
    static const char before[] = "muster.";
    const char *random = strrchr(name, '.');
    return strncmp(name, before, sizeof(before) - 1) == 0 && random > name + sizeof(before) - 1 &&
           strlen(random + 1) == 8 && strspn(random + 1, "0123456789abcdef") == 8;
}

/* Locks of other nodes are not seen on a file system that they share, so only these are swept. */
static bool is_local(int fd)
{
    static const unsigned long types[] = {0x01021994 /* tmpfs */,     0xef53 /* ext */,
                                          0x58465342 /* xfs */,       0x9123683e /* btrfs */,
                                          0x794c7630 /* overlayfs */, 0x2fc12fc1 /* zfs */};
    struct statfs fs;
    for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < sizeof(types) / sizeof(types[0]); i++) {
        if ((unsigned long)fs.f_type == types[i])
            return true;
    }
    return false;
}

/* Opens a directory that is no mount point: a user's own file system could hold us for ever.
 * @return its descriptor, or -1, also where the kernel (before 5.6) cannot */
static int open_here(int parent, const char *name)
{
#ifdef RESOLVE_NO_XDEV
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};

    return (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));
#else
    (void)parent;
    (void)name;
    return -1;
#endif
}

static void sweep_one(int parent, const char *name, bool drop, int64_t deadline)
{
    int fd = open_here(parent, name);
    struct stat st;
    if (fd < 0)
        return;
    /* Its content can harm its owner alone: with this mode only the owner can have put it here, for
     * to move a directory takes the right to write in it. */
    if (fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0700 && (drop || st.st_uid == geteuid()) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        struct identity owner = {.uid = st.st_uid, .gid = st.st_gid, .drop = drop};
        remove_tree(parent, name, fd, &owner, deadline);
    }
    close(fd);
}

/* Takes @p parent over. */
static void sweep(int parent, bool drop, int64_t deadline)
{
    DIR *dir = fdopendir(parent);
    struct dirent *entry;
    while (dir && deadline_left(deadline) > 0 && (entry = readdir(dir))) {
        if (is_ours(entry->d_name))
            sweep_one(parent, entry->d_name, drop, deadline);
    }
    if (dir)
        closedir(dir);
}

/* Sweeps each directory of @p where whose name begins with @p siblings. */
static void sweep_siblings(int where, const char *siblings, bool drop, int64_t deadline)
{
    DIR *dir = fdopendir(where);
    struct dirent *entry;
    while (dir && deadline_left(deadline) > 0 && (entry = readdir(dir))) {
        int fd = strncmp(entry->d_name, siblings, strlen(siblings)) == 0
                     ? open_here(where, entry->d_name)
                     : -1;
        if (fd >= 0)
            sweep(fd, drop, deadline);
    }
}

/* Forked twice, so that it is no child of the launcher, which waits for its own. It has nothing of
 * the launcher's but the right to remove, and logs nothing: a thread of the launcher may have held
 * a lock of the log's. */
static void sweep_aside(int parent, const char *siblings, bool drop)
{
    pid_t pid = is_local(parent) ? fork() : -1;
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (pid != 0)
        return;
    if (fork() != 0)
        _exit(0);
    setsid();
    child_default_signals();
    alarm(SWEEP_S);
    log_open(NULL, NULL, LOG_LEVEL_ERROR, NULL);
    /* not the launcher's own place in it */
    int fd = openat(parent, siblings ? ".." : ".", O_RDONLY | O_DIRECTORY);
    if (fd >= 0 && dup2(fd, STDERR_FILENO + 1) >= 0) {
        child_close_from(STDERR_FILENO + 2);
        if (siblings)
            sweep_siblings(STDERR_FILENO + 1, siblings, drop, now_ms() + SWEEP_MS);
        else
            sweep(STDERR_FILENO + 1, drop, now_ms() + SWEEP_MS);
    }
    _exit(0);
}

/* Makes a directory of a name that no user can foresee, "muster.4711.0.xxxxxxxx". */
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

/* Opens and locks what we made and gives it to the user by descriptor: what the name means by now
 * does not matter. @return its descriptor, or -1 with errno: EAGAIN when a sweep was faster */
static int give_dir(int parent, const char *name, const struct identity *user)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0) {
        errno = errno == ENOENT ? EAGAIN : errno;
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0) {
        close(fd);
        errno = EAGAIN;
        return -1;
    }
    if (st.st_uid != geteuid() || fchmod(fd, 0700) < 0 ||
        (user->drop && fchown(fd, user->uid, user->gid) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Both; a name that a sweep takes away is made again. */
static int make_and_give(int parent, const char *label, const struct identity *user, char *name,
                         size_t cap)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        if (make_dir(parent, label, name, cap) < 0)
            return -1;
        int fd = give_dir(parent, name, user);
        if (fd >= 0)
            return fd;
        if (errno != EAGAIN) {
            int saved_errno = errno;
            unlinkat(parent, name, AT_REMOVEDIR);
            errno = saved_errno;
            return -1;
        }
    }
    return -1;
}

static bool lacks_room(int fd, unsigned long long least, const char *key, const char *tmpfs,
                       size_t len, char *buf, size_t cap)
{
    struct statvfs fs;
    unsigned long long kib;
    if (fstatvfs(fd, &fs) < 0 || fs.f_blocks == 0) /* 0: it does not count */
        return false;
    kib = (unsigned long long)fs.f_bavail * fs.f_frsize / 1024;
    if (kib < least)
        snprintf(buf, cap, "%s=%.*s has %llu KiB free", key, (int)len, tmpfs, kib);
    else if (fs.f_files > 0 && fs.f_favail < LEAST_FILES)
        snprintf(buf, cap, "%s=%.*s has room for %llu files", key, (int)len, tmpfs,
                 (unsigned long long)fs.f_favail);
    else
        return false;
    return true;
}

bool scratch_lacks_room(const struct scratch *scratch, char *buf, size_t cap)
{
    return scratch->path &&
           lacks_room(scratch->parent, LITTLE_KIB, scratch->key, scratch->path,
                      (size_t)(strrchr(scratch->path, '/') - scratch->path), buf, cap);
}

/* A full file system would end the server later, by a signal that says little. */
static int check_room(int parent, const char *key, const char *tmpfs, struct err *err)
{
    char lacks[512];
    if (!lacks_room(parent, LEAST_KIB, key, tmpfs, strlen(tmpfs), lacks, sizeof(lacks)))
        return 0;
    return err_set(err,
                   "%s, and muster-server needs %d KiB and %d files at least: remove files there, "
                   "or set tmpdir in " MUSTER_CONF_PATH " to a directory with more room",
                   lacks, LEAST_KIB, LEAST_FILES);
}

int scratch_make(struct scratch *scratch, const char *key, const char *tmpfs, const char *siblings,
                 const char *label, const struct identity *user, struct err *err)
{
    char name[128];
    scratch->path = NULL;
    scratch->key = key;
    scratch->dir = -1;
    scratch->parent = open_parent(key, tmpfs, user, err);
    if (scratch->parent < 0)
        return -1;
    sweep_aside(scratch->parent, siblings, user->drop);
    if (check_room(scratch->parent, key, tmpfs, err) < 0) {
        close(scratch->parent);
        return -1;
    }
    scratch->dir = make_and_give(scratch->parent, label, user, name, sizeof(name));
    if (scratch->dir < 0) {
        err_set(err,
                "cannot make a directory for uid %u in %s=%s: %s; %s, or set tmpdir "
                "in " MUSTER_CONF_PATH " to a directory elsewhere",
                user->uid, key, tmpfs, strerror(errno),
                errno == EROFS ? "mount it for writing" : "mend it");
        close(scratch->parent);
        return -1;
    }
    if (asprintf(&scratch->path, "%s/%s", tmpfs, name) < 0) {
        scratch->path = NULL;
        unlinkat(scratch->parent, name, AT_REMOVEDIR);
        close(scratch->dir);
        close(scratch->parent);
        return err_set(err, "out of memory");
    }
    return 0;
}

bool scratch_is_seen(const struct scratch *scratch)
{
    struct stat it, named;
    if (fstat(scratch->dir, &it) < 0 || it.st_nlink == 0)
        return true;
    return stat(scratch->path, &named) == 0 && named.st_dev == it.st_dev &&
           named.st_ino == it.st_ino;
}

void scratch_remove(struct scratch *scratch, const struct identity *user)
{
    if (!scratch->path)
        return;
    const char *name = strrchr(scratch->path, '/') + 1;
    if (remove_tree(scratch->parent, name, scratch->dir, user, now_ms() + REMOVE_MS) < 0 &&
        errno != ENOENT) /* many servers take it along */
        log_warning("cannot remove %s: %s", scratch->path, strerror(errno));
    close(scratch->dir);
    close(scratch->parent);
    free(scratch->path);
    scratch->path = NULL;
}
