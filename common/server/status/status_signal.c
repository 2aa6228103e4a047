/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGUSR1 has the state written to a file in the server's own directory. By a descriptor, so that
 * no handler runs on a thread of libpmix's. */
#include "common/server/server.h"
#include "common/server/status/status.h"
#include "common/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct status_signal {
    struct server *server;
    struct event *event;
    int fd;
};

static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
}

void status_block_signal(void)
{
    sigset_t set;
    fill(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A reader of the file sees all of the new state, or all of what was there before. */
static void write_file(struct status_signal *signal)
{
    const char *dir = signal->server->boot.tmpdir;
    char path[4096], fresh[4096 + 8];
    size_t len;
    char *text = status_text(signal->server, &len);
    snprintf(path, sizeof path, "%s/" STATUS_FILE, dir);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = text != NULL && fd >= 0 && dprintf(fd, "%s\n", text) > 0;
    good = fd >= 0 && close(fd) == 0 && good && rename(fresh, path) == 0;
    if (good) /* the sender of the signal looks for this, whatever the level is */
        log_warning("SIGUSR1: the state is in %s", path);
    else
        log_warning("SIGUSR1: the state cannot be written to %s: %s", path, strerror(errno));
    free(text);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct signalfd_siginfo info;
    bool came = false;
    (void)what;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        came = true;
    if (came)
        write_file(arg);
}

struct status_signal *status_signal_open(struct server *server)
{
    sigset_t set;
    struct status_signal *signal = calloc(1, sizeof *signal);
    fill(&set);
    signal->server = server;
    signal->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signal->fd >= 0)
        signal->event =
            event_new(server->base, signal->fd, EV_READ | EV_PERSIST, on_signal, signal);
    if (signal->event == NULL || event_add(signal->event, NULL) != 0)
        log_warning("SIGUSR1 will not show the state: %s", strerror(errno));
    return signal;
}

void status_signal_close(struct status_signal *signal)
{
    if (signal->event != NULL)
        event_free(signal->event);
    if (signal->fd >= 0)
        close(signal->fd);
    free(signal);
}
