/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of muster-exec, and the count of those that have become their programs. */
#include "common/server/execs.h"

#include "common/launch/plan.h"
#include "common/server/ending.h"
#include "common/util/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ARITY = 16,
    BACKLOG = 1024,
    RANK_BYTES = 4,
    FAILURE_BYTES = 12, /* behind the rank, before the name */
    STATUS_NO_EXEC = 127,
    TEXT_MAX = 512,
};

/* SAYS_STARTED: from a server whose whole part of the tree has; SAYS_FAILED: to node 0. */
enum { SAYS_STARTED = 1, SAYS_FAILED };

enum exec_state { EXEC_AWAITED, EXEC_UNDER_WAY, EXEC_DONE };

struct connection {
    struct execs *execs;
    struct connection *next;
    struct bufferevent *bev;
    uint32_t slot; /* ntasks: it has not said yet */
};

struct execs {
    struct server *server;
    struct evconnlistener *listener;
    struct connection *open;
    enum exec_state *tasks; /* by slot */
    uint32_t ndone, nbelow; /* tasks here, and servers right below that have said so */
    bool below[ARITY];      /* which ones */
    bool told;              /* this server has said its word, upwards or, as node 0, to the RM */
};

char *execs_env(const struct server *server)
{
    char *text;
    if (server->execs == NULL ||
        asprintf(&text, PLAN_SOCKET_ENV "=%s/" PLAN_SOCKET, server->boot.tmpdir) < 0)
        return NULL;
    return text;
}

/* ---- what is told ---- */

static uint32_t ntasks_here(const struct server *server)
{
    return server->boot.nodes[server->boot.node].ntasks;
}

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
    if (execs->told || execs->ndone < ntasks_here(server) || execs->nbelow < servers_below(server))
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
    log_warning("%s", text); /* whoever has started the step shows it */
    server_end_step(server, &ending, NULL);
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

void execs_ended(struct server *server, uint32_t slot, uint32_t sig, uint32_t code)
{
    struct execs *execs = server->execs;
    char text[TEXT_MAX];
    const struct boot_node *here = &server->boot.nodes[server->boot.node];
    if (execs == NULL || slot >= here->ntasks || execs->tasks[slot] != EXEC_AWAITED)
        return; /* else its connection has said, or is about to say, how it went */
    snprintf(text, sizeof text, "rank %u on %s ended before it was started: %s %u",
             here->ranks[slot], here->name, sig != 0 ? "signal" : "exit code",
             sig != 0 ? sig : code);
    fail(execs, RM_SPAWN_FAILED, text);
}

/* ---- connections ---- */

static void drop(struct connection *c)
{
    struct connection **at = &c->execs->open;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    bufferevent_free(c->bev);
    free(c);
}

static void on_failure(struct connection *c, uint32_t what, int error, const char *name)
{
    const struct boot_node *here = &c->execs->server->boot.nodes[c->execs->server->boot.node];
    bool at_wdir = what == PLAN_AT_DIRECTORY;
    bool missing = error == ENOENT || error == ENOTDIR;
    bool refused = error == EACCES || error == EPERM || error == ENOEXEC;
    enum rm_spawn_result result = missing   ? at_wdir ? RM_SPAWN_NO_DIRECTORY : RM_SPAWN_NO_PROGRAM
                                  : refused ? at_wdir ? RM_SPAWN_NO_ENTRY : RM_SPAWN_NO_EXECUTE
                                            : RM_SPAWN_FAILED;
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "rank %u on %.64s of the spawned step %.32s cannot be started: %s%s: %s",
             here->ranks[c->slot], here->name, c->execs->server->boot.label,
             at_wdir ? "its working directory " : "", name, strerror(error));
    c->execs->tasks[c->slot] = EXEC_DONE;
    fail(c->execs, result, text);
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
    struct execs *execs = c->execs;
    const struct boot_node *here = &execs->server->boot.nodes[execs->server->boot.node];
    struct evbuffer *input = bufferevent_get_input(bev);
    unsigned char bytes[FAILURE_BYTES];
    if (c->slot == here->ntasks && evbuffer_get_length(input) >= RANK_BYTES) {
        evbuffer_remove(input, bytes, RANK_BYTES);
        uint32_t rank = number(bytes);
        for (uint32_t slot = 0; slot < here->ntasks; slot++)
            if (here->ranks[slot] == rank && execs->tasks[slot] == EXEC_AWAITED)
                c->slot = slot;
        if (c->slot == here->ntasks) {
            log_warning("a process said that it is about to be rank %u, which is not awaited here",
                        rank);
            drop(c);
            return;
        }
        execs->tasks[c->slot] = EXEC_UNDER_WAY;
        bufferevent_write(bev, "", 1);
    }
    if (c->slot < here->ntasks && evbuffer_copyout(input, bytes, sizeof bytes) == sizeof bytes) {
        uint32_t what = number(bytes), error = number(bytes + 4), len = number(bytes + 8);
        char name[PLAN_NAME_MAX + 1] = "";
        bool good = what != 0 && what < PLAN_STEPS && error < INT32_MAX && len <= PLAN_NAME_MAX;
        if (good && evbuffer_get_length(input) < sizeof bytes + len)
            return; /* more is to come */
        evbuffer_drain(input, sizeof bytes);
        evbuffer_remove(input, name, good ? len : 0);
        if (good)
            on_failure(c, what, (int)error, name);
        drop(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    struct execs *execs = c->execs;
    uint32_t slot = c->slot;
    (void)bev;
    (void)what;
    drop(c);
    if (slot < ntasks_here(execs->server))
        done(execs, slot);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int addrlen, void *arg)
{
    struct execs *execs = arg;
    struct ucred cred;
    socklen_t len = sizeof cred;
    (void)listener;
    (void)addr;
    (void)addrlen;
    bool own = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid();
    struct connection *c = own ? calloc(1, sizeof *c) : NULL;
    if (c != NULL)
        c->bev = bufferevent_socket_new(execs->server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (c == NULL || c->bev == NULL) {
        free(c);
        evutil_closesocket(fd);
        return;
    }
    c->execs = execs;
    c->slot = ntasks_here(execs->server);
    c->next = execs->open;
    execs->open = c;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, RANK_BYTES + FAILURE_BYTES + PLAN_NAME_MAX);
    bufferevent_enable(c->bev, EV_READ);
}

/* ---- opening and closing ---- */

static int open_socket(struct execs *execs)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct server *server = execs->server;
    if (snprintf(addr.sun_path, sizeof addr.sun_path, "%s/" PLAN_SOCKET, server->boot.tmpdir) >=
        (int)sizeof addr.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && chmod(addr.sun_path, 0600) == 0)
        execs->listener =
            evconnlistener_new(server->base, on_accept, execs,
                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
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
    if (execs == NULL)
        return err_set(err, "out of memory");
    server->execs = execs;
    execs->server = server;
    execs->tasks = calloc(ntasks_here(server) + 1, sizeof *execs->tasks);
    if (execs->tasks == NULL || open_socket(execs) != 0)
        return err_set(err, "no socket for the processes of a spawned step in %s: %s",
                       server->boot.tmpdir, strerror(errno));
    log_info("spawned by %s rank %u", nspace, rank);
    return 0;
}

void execs_close(struct server *server)
{
    struct execs *execs = server->execs;
    if (execs == NULL)
        return;
    while (execs->open != NULL)
        drop(execs->open);
    if (execs->listener != NULL)
        evconnlistener_free(execs->listener);
    free(execs->tasks);
    free(execs);
    server->execs = NULL;
}
