/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The Unix socket in slurmd's spool directory that messages from other nodes arrive at.
 *
 * It is made before the server is started, so that what peers send early waits in its backlog.
 * slurmd connects to it with the rights of the sender, so its owner and mode keep others out.
 */
#include "plugins/slurm/listener.h"

#include "common/util/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    BIRTH_S = 60, /* a socket that is not complete by then never will be */
};

/* slurmd reaches the socket as the user, so the user must be able to walk to it. */
static int check_spool(const struct facts *facts, struct err *err)
{
    char *path = strdup(facts->spool);
    int rc = path ? 0 : err_set(err, "out of memory");
    struct stat st;
    for (char *p = path; rc == 0 && p && *p != '\0';) {
        char *end = p + 1 + strcspn(p + 1, "/"), saved = *end;
        *end = '\0';
        if (stat(path, &st) < 0)
            rc = err_set(err, "cannot look at %s on node %s: %s", path, facts->node,
                         strerror(errno));
        else if ((st.st_mode & S_IXOTH) == 0)
            rc = err_set(err,
                         "directory %s on node %s has mode %04o, and messages between nodes go "
                         "through it with the user's rights: an admin has to run chmod o+x on it",
                         path, facts->node, st.st_mode & 07777);
        *end = saved;
        p = end;
    }
    free(path);
    return rc;
}

static int fill_address(struct sockaddr_un *addr, const char *path)
{
    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    return snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path) <
                   (int)sizeof(addr->sun_path)
               ? 0
               : -1;
}

/* Whether no server listens any more. A live server sees a connection without a byte. */
static int is_stale(const char *path)
{
    struct sockaddr_un addr;
    int fd, stale;
    if (fill_address(&addr, path) < 0)
        return 0;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    stale = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* Names "muster.…" appear only once a server listens on them (see make_socket), so what refuses a
 * connection is dead. */
static bool may_be_left(const char *name, const struct stat *st)
{
    if (!S_ISSOCK(st->st_mode))
        return false;
    return strncmp(name, "muster.", 7) == 0 ||
           (strncmp(name, "must~r.", 7) == 0 && time(NULL) > st->st_mtime + BIRTH_S);
}

/* A killed slurmstepd leaves its socket behind. */
static void sweep(const char *spool)
{
    DIR *dir = opendir(spool);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
        struct stat st;
        if (snprintf(path, sizeof(path), "%s/%s", spool, entry->d_name) >= (int)sizeof(path))
            continue;
        if (lstat(path, &st) == 0 && may_be_left(entry->d_name, &st) && is_stale(path) &&
            unlink(path) == 0)
            log_debug("removed %s, left by a step that was killed", path);
    }
    if (dir)
        closedir(dir);
}

/* Makes it under a name that sweep() passes over, and renames it when it is complete. */
static int make_socket(struct listener *listener, const char *birth, const struct identity *user)
{
    struct sockaddr_un addr;
    if (fill_address(&addr, birth) < 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener->fd < 0)
        return -1;
    unlink(birth);
    mode_t mask = umask(0177); /* 0600 from its birth */
    int rc = bind(listener->fd, (struct sockaddr *)&addr, sizeof(addr));
    umask(mask);
    if (rc < 0)
        return -1;
    if ((user->drop && lchown(birth, user->uid, user->gid) < 0) ||
        listen(listener->fd, BACKLOG) < 0 || rename(birth, listener->path) < 0) {
        int saved_errno = errno;
        unlink(birth);
        errno = saved_errno;
        return -1;
    }
    return 0;
}

int listener_open(struct listener *listener, const struct facts *facts, struct err *err)
{
    char birth[sizeof(listener->path)];
    int n = snprintf(listener->path, sizeof(listener->path), "%s/" FACTS_SOCKET, facts->spool,
                     facts->jobs[0], facts->step, facts->runs[0].first);
    listener->fd = -1;
    if (n >= (int)sizeof(listener->path)) {
        listener->path[0] = '\0';
        return err_set(err,
                       "SlurmdSpoolDir is too long on node %s: %s/" FACTS_SOCKET " has to fit "
                       "into the %zu bytes of a Unix socket's path",
                       facts->node, facts->spool, facts->jobs[0], facts->step, facts->runs[0].first,
                       sizeof(listener->path) - 1);
    }
    if (facts->user.drop && facts->user.uid != 0 && check_spool(facts, err) < 0) {
        listener->path[0] = '\0';
        return -1;
    }
    sweep(facts->spool);
    /* of the same length */
    snprintf(birth, sizeof(birth), "%s", listener->path);
    memcpy(birth + strlen(facts->spool) + 1, "must~r", 6);
    if (make_socket(listener, birth, &facts->user) < 0) {
        err_set(err, "cannot make the socket %s on node %s: %s", listener->path, facts->node,
                strerror(errno));
        listener_close(listener);
        listener->path[0] = '\0';
        return -1;
    }
    return 0;
}

void listener_close(struct listener *listener)
{
    if (listener->fd >= 0)
        close(listener->fd);
    listener->fd = -1;
}

void listener_remove(struct listener *listener)
{
    if (listener->path[0] != '\0')
        unlink(listener->path);
    listener->path[0] = '\0';
    listener_close(listener);
}
