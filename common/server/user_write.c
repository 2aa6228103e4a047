/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes files for the step's user, on a thread that may be left behind. */
#include "common/server/user_write.h"

#include "common/handoff/worker.h"
#include "common/server/user_file.h"
#include "common/util/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_MAX = 100, KEPT_DAYS = 30, JOIN_MS = 100 /* for a thread that has nothing to do */ };

/* What the caller waits for; its own. */
struct outcome {
    bool done, made;
    int error;
};

struct writing {
    struct work work;
    struct outcome *outcome; /* the loop's alone */
    char *dir, *part, *name; /* owned; part: NULL unless it is kept below dir, a home */
    char *data;              /* owned */
    size_t len;
    struct outcome found;
};

static void free_writing(struct writing *w)
{
    free(w->dir);
    free(w->part);
    free(w->name);
    free(w->data);
    free(w);
}

/* @param fd closed @return 0, or -1 with errno set */
static int write_all(int fd, const char *data, size_t len)
{
    size_t n = 0;
    for (ssize_t rc = 0; n < len; n += (size_t)rc)
        if ((rc = write(fd, data + n, len - n)) < 0)
            break;
    int saved = errno;
    if (close(fd) != 0)
        return -1;
    errno = saved;
    return n == len ? 0 : -1;
}

/* The file has its name when it is whole. What a server that was killed leaves goes with the
 * others. */
static int keep(struct writing *w)
{
    char dir[PATH_MAX];
    int at = user_dir_make(w->dir, BOOT_KEPT, dir, sizeof dir);
    int fd = at >= 0 ? user_file_make(dir, w->part) : -1, rc = -1;
    w->found.made = fd >= 0;
    if (fd >= 0 && write_all(fd, w->data, w->len) == 0)
        rc = renameat(at, w->part, at, w->name);
    int saved = errno;
    if (fd >= 0 && rc != 0)
        unlinkat(at, w->part, 0);
    if (at >= 0)
        user_dir_thin(at, "muster.*.stats.*", KEPT_MAX, KEPT_DAYS);
    errno = saved;
    return rc;
}

static int put(struct writing *w)
{
    int fd = user_file_make(w->dir, w->name);
    w->found.made = fd >= 0;
    return fd >= 0 ? write_all(fd, w->data, w->len) : -1;
}

/* @thread the worker's */
static void call(struct work *work)
{
    struct writing *w = (struct writing *)work;
    int rc = w->part != NULL ? keep(w) : put(w);
    w->found.error = rc == 0 ? 0 : errno;
    w->found.done = true;
}

static void done(struct handoff_item *item)
{
    struct writing *w = (struct writing *)item;
    *w->outcome = w->found;
    free_writing(w);
}

static void drop(struct work *work)
{
    free_writing((struct writing *)work);
}

static int run(struct server *server, struct writing *w, bool *made)
{
    static const struct work_ops ops = {call, done, drop};
    struct outcome outcome = {.error = ETIMEDOUT};
    struct worker *worker = worker_new(&ops, server->handoff);
    int64_t by = now_ms() + USER_WRITE_MS, left;
    w->outcome = &outcome;
    server_tell_launcher(BOOT_SAYS_STAYS);
    if (!worker_do(worker, &w->work)) {
        outcome.error = EAGAIN;
        free_writing(w);
    }
    while (!outcome.done && outcome.error == ETIMEDOUT && (left = by - now_ms()) > 0)
        if (!server_turn(server, left))
            break;
    worker_close(worker, now_ms() + JOIN_MS);
    handoff_run(server->handoff); /* it may have ended just now; later it hands over nothing */
    *made = outcome.made;
    return outcome.error;
}

static struct writing *writing_new(const char *dir, const char *name, char *data, size_t len)
{
    struct writing *w = calloc(1, sizeof *w);
    w->dir = strdup(dir);
    w->name = strdup(name);
    w->data = data;
    w->len = len;
    return w;
}

int user_write(struct server *server, const char *dir, const char *name, char *data, size_t len,
               bool *made)
{
    return run(server, writing_new(dir, name, data, len), made);
}

int user_keep(struct server *server, const char *home, const char *part, const char *name,
              char *data, size_t len)
{
    struct writing *w = writing_new(home, name, data, len);
    bool made;
    w->part = strdup(part);
    return run(server, w, &made);
}
