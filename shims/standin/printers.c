/* SPDX-License-Identifier: BSD-3-Clause */
/* A piece is sent to each program before the next output is read, so one is kept at most. See
 * printers.h. */
#include "shims/standin/printers.h"

#include "common/util/clock.h"
#include "common/util/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { GIVE_UP_MS = 10000, HEAD = offsetof(struct printers_piece, data) };

struct printers {
    struct sockaddr_un at;
    int listener;          /* -1: none */
    int fds[PRINTERS_MAX]; /* -1: none */
    bool owed[PRINTERS_MAX];
    int64_t give_up; /* when those are let go that do not take the piece; 0: all have */
    size_t len;      /* of the piece */
    struct printers_piece piece;
};

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The server takes its words at blanks. */
static void name_program(const struct printers *p)
{
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *command = n > 0 && p->listener >= 0 && !strchr(self, ' ') && !strchr(p->at.sun_path, ' ')
                        ? text_format("%s --printer %s", self, p->at.sun_path)
                        : NULL;
    setenv("MUSTER_PRINTER", command ? command : "", 1);
    free(command);
}

struct printers *printers_open(const struct standin_step *step)
{
    struct printers *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    for (int i = 0; i < PRINTERS_MAX; i++)
        p->fds[i] = -1;
    p->at.sun_family = AF_UNIX;
    snprintf(p->at.sun_path, sizeof(p->at.sun_path), "%.80s/output.%u", step->dir, step->step);
    p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener >= 0 && (bind(p->listener, (struct sockaddr *)&p->at, sizeof(p->at)) < 0 ||
                             listen(p->listener, 4) < 0))
        shut(&p->listener);
    name_program(p);
    return p;
}

void printers_leave(struct printers *p)
{
    shut(&p->listener);
}

void printers_close(struct printers *p)
{
    if (p->listener >= 0)
        unlink(p->at.sun_path);
    shut(&p->listener);
    for (int i = 0; i < PRINTERS_MAX; i++)
        shut(&p->fds[i]);
    free(p);
}

/* Writes what is owed, as far as it is taken. */
static void push(struct printers *p)
{
    bool owes = false;
    for (int i = 0; i < PRINTERS_MAX; i++) {
        if (!p->owed[i])
            continue;
        ssize_t n = send(p->fds[i], &p->piece, p->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        p->owed[i] = n < 0 && (errno == EAGAIN || errno == EINTR) && now_ms() < p->give_up;
        if (n < 0 && !p->owed[i])
            shut(&p->fds[i]);
        owes |= p->owed[i];
    }
    p->give_up = owes ? p->give_up : 0;
}

void printers_say(struct printers *p, uint32_t rank, int which, const char *data, size_t len)
{
    p->piece.rank = rank;
    p->piece.which = (uint32_t)which;
    memcpy(p->piece.data, data, len);
    p->len = HEAD + len;
    p->give_up = now_ms() + GIVE_UP_MS;
    for (int i = 0; i < PRINTERS_MAX; i++)
        p->owed[i] = p->fds[i] >= 0;
    push(p);
}

int64_t printers_wait(const struct printers *p)
{
    return p->give_up;
}

void printers_poll(const struct printers *p, struct pollfd *fds)
{
    fds[0] = (struct pollfd){p->listener, POLLIN, 0};
    for (int i = 0; i < PRINTERS_MAX; i++)
        fds[1 + i] = (struct pollfd){p->fds[i], p->owed[i] ? POLLOUT : POLLIN, 0};
}

/* A program says nothing: what can be read is its end. */
static void look_at(struct printers *p, int i)
{
    char byte;
    ssize_t n = p->fds[i] >= 0 ? recv(p->fds[i], &byte, 1, MSG_DONTWAIT) : 1;
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    p->owed[i] = false;
    shut(&p->fds[i]);
}

void printers_ready(struct printers *p, const struct pollfd *fds)
{
    for (int i = 0; i < PRINTERS_MAX; i++)
        if (fds[1 + i].revents & (POLLIN | POLLHUP | POLLERR))
            look_at(p, i);
    if (p->give_up != 0)
        push(p);
    if (!fds[0].revents)
        return;
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), i = 0;
    while (i < PRINTERS_MAX && p->fds[i] >= 0)
        i++;
    if (i < PRINTERS_MAX)
        p->fds[i] = fd;
    else
        shut(&fd);
}
