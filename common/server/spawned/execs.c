/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of muster-exec, and the count of tasks that have become their programs. */
#include "common/server/spawned/execs.h"

#include "common/launch/plan.h"
#include "common/server/ending.h"
#include "common/server/spawned/streams.h"
#include "common/server/status/stopped.h"
#include "common/util/local.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ARITY = 16,
    BACKLOG = 1024,
    HELLO_BYTES = 12,   /* before the home */
    FAILURE_BYTES = 12, /* before the name */
    STATUS_NO_EXEC = 127,
    TEXT_MAX = 512,
    CAUSE_MS = 1000, /* to wait for another server to say why a task was killed */
};

/* SAYS_STARTED: from a server whose whole part of the tree has; SAYS_FAILED: to node 0. */
enum { SAYS_STARTED = 1, SAYS_FAILED };

enum exec_state { EXEC_AWAITED, EXEC_UNDER_WAY, EXEC_DONE };

struct connection {
    struct execs *execs;
    LIST_ENTRY(connection) entry;
    int fd;                  /* until bev takes it over */
    struct event *hello;     /* until muster-exec has said its rank */
    struct bufferevent *bev; /* NULL until hello has fired */
    uint32_t slot;           /* ntasks: muster-exec has not said its rank yet */
};

struct execs {
    struct server *server;
    struct evconnlistener *listener;
    LIST_HEAD(, connection) open;
    enum exec_state *tasks; /* by slot */
    uint32_t ndone, nbelow; /* tasks here that have become their programs, and servers right below
                               that have reported it */
    bool below[ARITY];      /* which of those servers have reported */
    bool told;             /* this server has reported, to the one above or, as node 0, to the RM */
    struct timer patience; /* runs out where no other server has said why a task was killed */
    char killed[TEXT_MAX]; /* the message that is logged then; "": no task was killed */
};

char *execs_env(const struct server *server)
{
    return server->execs == NULL
               ? NULL
               : text_format(PLAN_SOCKET_ENV "=%s/" PLAN_SOCKET, server->boot.tmpdir);
}

/* ---- what is told ---- */

static uint32_t servers_below(const struct server *server)
{
    uint32_t first = server->boot.node * ARITY + 1, n = server->boot.nnodes;
    return first >= n ? 0 : n - first < ARITY ? n - first : ARITY;
}

static void tell_rm(struct execs *execs, enum rm_spawn_result result, const char *text)
{
    struct server *server = execs->server;
    const struct rm_spawn_news news = {.result = result,
                                       .text = text,
                                       .registration = server->nspace->bytes,
                                       .len = server->nspace->len};
    if (execs->told)
        return;
    execs->told = true;
    if (server->rm != NULL && server->rm_ops->started != NULL)
        server->rm_ops->started(server->rm, &news);
}

static void send_up(struct execs *execs, uint32_t node, uint8_t what, uint32_t result,
                    const char *text)
{
    struct wire_out frame = {0};
    wire_put_u8(&frame, FRAME_STARTED);
    wire_put_u8(&frame, what);
    wire_put_u32(&frame, result);
    wire_put_str(&frame, text);
    link_send(execs->server->link, node, &frame);
}

static void look(struct execs *execs)
{
    struct server *server = execs->server;
    if (execs->told || execs->ndone < boot_here(&server->boot)->ntasks ||
        execs->nbelow < servers_below(server))
        return;
    log_info("all processes from here down have been started");
    if (server->boot.node == 0) {
        tell_rm(execs, RM_SPAWN_RUNS, NULL);
        return;
    }
    execs->told = true;
    send_up(execs, (server->boot.node - 1) / ARITY, SAYS_STARTED, RM_SPAWN_RUNS, "");
}

/* The step ends: its other processes would wait for this one. */
static void fail(struct execs *execs, enum rm_spawn_result result, const char *text)
{
    struct server *server = execs->server;
    if (server->ending || (execs->told && server->boot.node != 0))
        return;
    if (server->boot.node == 0) {
        tell_rm(execs, result, text);
    } else {
        execs->told = true;
        send_up(execs, 0, SAYS_FAILED, (uint32_t)result, text);
    }
    struct rm_ending ending = ending_of_task(0, STATUS_NO_EXEC, text);
    /* the program that has started the step shows it */
    server_end_step(server, &ending, ENDING_NOBODY_TELLS);
}

void execs_receive(struct server *server, uint32_t from, const void *body, size_t len)
{
    struct execs *execs = server->execs;
    char text[TEXT_MAX];
    struct wire_in in;
    wire_in_init(&in, body, len);
    uint8_t what = wire_get_u8(&in);
    uint32_t result = wire_get_u32(&in);
    wire_get_str(&in, text, sizeof text);
    uint32_t first = server->boot.node * ARITY + 1;
    if (execs == NULL || in.bad)
        return;
    if (what == SAYS_FAILED && server->boot.node == 0 && result > RM_SPAWN_ENDED &&
        result < RM_SPAWN_RESULTS) {
        tell_rm(execs, (enum rm_spawn_result)result, text);
    } else if (what == SAYS_STARTED && from >= first && from - first < ARITY &&
               !execs->below[from - first]) {
        execs->below[from - first] = true;
        execs->nbelow++;
        look(execs);
    }
}

static void done(struct execs *execs, uint32_t slot)
{
    if (execs->tasks[slot] == EXEC_DONE)
        return;
    execs->tasks[slot] = EXEC_DONE;
    execs->ndone++;
    look(execs);
}

static void on_patience(void *arg, struct timer *timer)
{
    struct execs *execs = arg;
    (void)timer;
    if (!execs->told)
        fail(execs, RM_SPAWN_FAILED, execs->killed);
}

/* Most likely the RM has killed the task because another process of the step could not be started.
 * The server of that process says so, but its message may come after the kill. */
static void await_why(struct execs *execs, const char *text)
{
    if (execs->killed[0] != '\0')
        return;
    snprintf(execs->killed, sizeof execs->killed, "%s", text);
    timer_init(&execs->patience, &execs->server->timers, on_patience, execs);
    timer_after(&execs->patience, CAUSE_MS);
}

void execs_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    struct execs *execs = server->execs;
    char text[TEXT_MAX];
    const struct boot_node *here = boot_here(&server->boot);
    if (execs == NULL || slot >= here->ntasks || execs->tasks[slot] != EXEC_AWAITED)
        return; /* else its connection has said, or is about to say, how it went */
    snprintf(text, sizeof text, "rank %u on %s ended before it was started: %s %u",
             here->ranks[slot], here->name, sig != 0 ? "signal" : "exit code",
             sig != 0 ? sig : code);
    if (sig == SIGKILL || sig == SIGTERM)
        await_why(execs, text);
    else
        fail(execs, RM_SPAWN_FAILED, text);
}

/* ---- connections ---- */

static void drop(struct connection *c)
{
    LIST_REMOVE(c, entry);
    if (c->hello != NULL)
        event_free(c->hello);
    if (c->bev != NULL)
        bufferevent_free(c->bev);
    else
        evutil_closesocket(c->fd);
    free(c);
}

static void on_failure(struct connection *c, uint32_t what, int error, const char *name)
{
    const struct boot_node *here = boot_here(&c->execs->server->boot);
    bool at_wdir = what == PLAN_AT_DIRECTORY;
    bool missing = error == ENOENT || error == ENOTDIR;
    bool refused = error == EACCES || error == EPERM || error == ENOEXEC;
    enum rm_spawn_result result = what == PLAN_AT_STOP ? RM_SPAWN_FAILED
                                  : missing ? at_wdir ? RM_SPAWN_NO_DIRECTORY : RM_SPAWN_NO_PROGRAM
                                  : refused ? at_wdir ? RM_SPAWN_NO_ENTRY : RM_SPAWN_NO_EXECUTE
                                            : RM_SPAWN_FAILED;
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "rank %u on %.64s of the spawned %s %.32s cannot be started: %s%s: %s",
             here->ranks[c->slot], here->name, log_unit(), c->execs->server->boot.label,
             at_wdir                ? "its working directory "
             : what == PLAN_AT_STOP ? "it cannot be stopped for a debugger: "
                                    : "",
             name, strerror(error));
    c->execs->tasks[c->slot] = EXEC_DONE;
    fail(c->execs, result, text);
}

/* @return whether the task in @p slot is to be stopped at its exec */
static bool stops(const struct execs *execs, uint32_t slot)
{
    const struct stop *stop = &execs->server->stopped.stop;
    return stop->where == STOP_ON_EXEC &&
           (stop->rank == STOP_ALL || stop->rank == boot_here(&execs->server->boot)->ranks[slot]);
}

static uint32_t number(const unsigned char *bytes)
{
    struct wire_in in;
    wire_in_init(&in, bytes, 4);
    return wire_get_u32(&in);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    struct evbuffer *input = bufferevent_get_input(bev);
    unsigned char bytes[FAILURE_BYTES];
    if (evbuffer_copyout(input, bytes, sizeof bytes) < (ev_ssize_t)sizeof bytes)
        return;
    uint32_t what = number(bytes), error = number(bytes + 4), len = number(bytes + 8);
    char name[PLAN_NAME_MAX + 1] = "";
    bool good = what != 0 && what < PLAN_STEPS && error < INT32_MAX && len <= PLAN_NAME_MAX;
    if (good && evbuffer_get_length(input) < sizeof bytes + len)
        return; /* more is to come */
    evbuffer_drain(input, sizeof bytes);
    evbuffer_remove(input, name, good ? len : 0);
    if (what == PLAN_STOPPED && good && stops(c->execs, c->slot)) {
        struct server *server = c->execs->server;
        server->hooks->stopped(server, boot_here(&server->boot)->ranks[c->slot], STOPPED_ON_EXEC);
        return; /* the end comes next */
    }
    if (good && what != PLAN_STOPPED)
        on_failure(c, what, (int)error, name);
    drop(c);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    struct execs *execs = c->execs;
    uint32_t slot = c->slot;
    (void)bev, (void)what;
    drop(c);
    if (slot < boot_here(&execs->server->boot)->ntasks)
        done(execs, slot);
}

/* The kernel counts descriptors by the room for them, which CMSG_SPACE() rounds up to one more.
 * @return bytes, as recv(), or 0 when more descriptors came; the caller closes those in @p fds */
static ssize_t receive(int fd, void *data, size_t len, int *fds, unsigned *nfds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(PLAN_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {data, len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(PLAN_FDS_MAX * sizeof(int))};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *nfds = 0;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        *nfds = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(head), *nfds * sizeof(int));
    }
    return n >= 0 && (message.msg_flags & MSG_CTRUNC) ? 0 : n;
}

/* @param bytes the greeting, ended by NUL @param fds taken over either way
 * @return whether a task of this rank is awaited here */
static bool take_hello(struct connection *c, const unsigned char *bytes, const int *fds,
                       unsigned nfds)
{
    struct execs *execs = c->execs;
    const struct boot_node *here = boot_here(&execs->server->boot);
    uint32_t rank = number(bytes);
    for (uint32_t slot = 0; slot < here->ntasks; slot++)
        if (here->ranks[slot] == rank && execs->tasks[slot] == EXEC_AWAITED)
            c->slot = slot;
    if (c->slot == here->ntasks) {
        log_warning("a process said that it is about to be rank %u, which is not awaited here",
                    rank);
        for (unsigned i = 0; i < nfds; i++)
            close(fds[i]);
        return false;
    }
    if (streams_add(execs->server->streams, rank, (const char *)bytes + HELLO_BYTES,
                    number(bytes + 8) != 0, fds, nfds))
        return true;
    log_error("rank %u is not started: its output or input cannot be taken", rank);
    return false;
}

/* muster-exec sends its greeting at once, so the greeting is there as a whole. */
static void on_hello(evutil_socket_t fd, short what, void *arg)
{
    struct connection *c = arg;
    unsigned char bytes[HELLO_BYTES + PLAN_HOME_MAX + 1];
    int fds[PLAN_FDS_MAX];
    unsigned nfds;
    (void)what;
    ssize_t n = receive(fd, bytes, sizeof bytes - 1, fds, &nfds);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bytes[n > 0 ? n : 0] = '\0';
    bool whole = n >= HELLO_BYTES && number(bytes + 4) == (size_t)n - HELLO_BYTES;
    for (unsigned i = 0; i < nfds && !whole; i++)
        close(fds[i]);
    /* Without an answer muster-exec ends, and the launcher tells of a task that was awaited. */
    if (!whole || !take_hello(c, bytes, fds, nfds)) {
        drop(c);
        return;
    }
    event_free(c->hello);
    c->hello = NULL;
    c->bev = bufferevent_socket_new(c->execs->server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    c->execs->tasks[c->slot] = EXEC_UNDER_WAY;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, FAILURE_BYTES + PLAN_NAME_MAX);
    bufferevent_enable(c->bev, EV_READ);
    const char answer = stops(c->execs, c->slot) ? PLAN_STOP : PLAN_GO;
    bufferevent_write(c->bev, &answer, 1);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int addrlen, void *arg)
{
    struct execs *execs = arg;
    (void)listener, (void)addr, (void)addrlen;
    if (local_peer(fd) != geteuid()) {
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    c->hello = event_new(execs->server->base, fd, EV_READ | EV_PERSIST, on_hello, c);
    c->execs = execs;
    c->fd = fd;
    c->slot = boot_here(&execs->server->boot)->ntasks;
    LIST_INSERT_HEAD(&execs->open, c, entry);
    event_add(c->hello, NULL);
}

/* ---- opening and closing ---- */

static int open_socket(struct execs *execs)
{
    struct server *server = execs->server;
    int fd = local_bind(server->boot.tmpdir, PLAN_SOCKET);
    if (fd < 0)
        return -1;
    execs->listener = evconnlistener_new(
        server->base, on_accept, execs, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
    if (execs->listener == NULL)
        close(fd);
    return execs->listener != NULL ? 0 : -1;
}

int execs_open(struct server *server, struct err *err)
{
    char nspace[PROCSET_NAME_MAX + 1];
    uint32_t rank;
    if (!boot_parent(&server->boot, nspace, &rank))
        return 0;
    struct execs *execs = calloc(1, sizeof *execs);
    server->execs = execs;
    execs->server = server;
    execs->tasks = calloc(boot_here(&server->boot)->ntasks + 1, sizeof *execs->tasks);
    server->streams = streams_new(server);
    if (server->streams == NULL || open_socket(execs) != 0)
        return err_set(err, "no socket for the processes of a spawned step in %s: %s",
                       server->boot.tmpdir, strerror(errno));
    log_info("spawned by %s rank %u", nspace, rank);
    return 0;
}

bool execs_owe(const struct server *server)
{
    return server->execs != NULL && !server->execs->told;
}

bool execs_await_why(const struct server *server)
{
    return execs_owe(server) && server->execs->killed[0] != '\0';
}

void execs_close(struct server *server)
{
    struct execs *execs = server->execs;
    if (execs == NULL)
        return;
    while (!LIST_EMPTY(&execs->open))
        drop(LIST_FIRST(&execs->open));
    if (execs->listener != NULL)
        evconnlistener_free(execs->listener);
    streams_free(server->streams);
    server->streams = NULL;
    timer_stop(&execs->patience);
    free(execs->tasks);
    free(execs);
    server->execs = NULL;
}
