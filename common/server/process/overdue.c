/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of its own ends the process, since the thread that hangs cannot. A signal's handler
 * could not do it: to walk a directory takes memory. */
#include "common/server/process/overdue.h"

#include "common/util/clock.h"
#include "common/util/empty_dir.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *tmpdir;
    int64_t by;  /* now_ms() */
    int stop[2]; /* a pipe: its end of file stops the thread */
    pthread_t thread;
} overdue;

void overdue_remove(const char *tmpdir)
{
    int fd = open(tmpdir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        empty_dir(fd);
    if (rmdir(tmpdir) != 0 && errno != ENOENT)
        log_warning("%s cannot be removed: %s", tmpdir, strerror(errno));
}

void overdue_end(const char *tmpdir)
{
    overdue_remove(tmpdir);
    _exit(0);
}

static void *await_end(void *arg)
{
    struct pollfd stop = {overdue.stop[0], POLLIN, 0};
    int n;
    (void)arg;
    do
        n = poll(&stop, 1, deadline_left(overdue.by));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        overdue_end(overdue.tmpdir);
    return NULL;
}

void overdue_start(const char *tmpdir, unsigned ms)
{
    overdue.tmpdir = tmpdir;
    overdue.by = now_ms() + ms;
    if (pipe2(overdue.stop, O_CLOEXEC) != 0 ||
        pthread_create(&overdue.thread, NULL, await_end, NULL) != 0)
        overdue_end(overdue.tmpdir);
}

void overdue_stop(void)
{
    close(overdue.stop[1]);
    pthread_join(overdue.thread, NULL);
    close(overdue.stop[0]);
}
