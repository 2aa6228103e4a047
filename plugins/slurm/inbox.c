/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection a message: u32 uid of the sender, u32 length, that many bytes, end of file. */
#include "plugins/slurm/rm_slurm.h"

#include "common/server/process/limits.h"
#include "common/util/clock.h"
#include "common/util/local.h"
#include "common/util/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MESSAGE_TIMEOUT_S = 30, /* for all of a message; slurmd writes it in one go */
    HEADER = 8,
    LENGTH_MAX = 1 << 30, /* Slurm's own bound */
    CONNECTIONS_MAX = 4096,
    NAMED_MS = 100, /* for the plugin to remove the socket's name */
};

struct connection {
    TAILQ_ENTRY(connection) entry;
    struct inbox *inbox;
    struct bufferevent *bev;
};

struct inbox {
    const struct rm_host *host;
    struct event_base *base;
    struct evconnlistener *listener;
    TAILQ_HEAD(, connection) open;
    unsigned count;
    int64_t named_until; /* when the socket is shut with its name; 0: it is not to be shut */
    bool is_shut;
};

static void drop(struct connection *c)
{
    TAILQ_REMOVE(&c->inbox->open, c, entry);
    c->inbox->count--;
    bufferevent_free(c->bev);
    free(c);
}

static void deliver(struct inbox *inbox, struct evbuffer *input)
{
    struct wire_in in;
    size_t len = evbuffer_get_length(input);
    const unsigned char *data = evbuffer_pullup(input, -1);
    if (len == 0)
        return; /* a plugin that sweeps old sockets looked whether we are here */
    wire_in_init(&in, data, len);
    uint32_t uid = wire_get_u32(&in), length = wire_get_u32(&in);
    if (in.bad || uid != getuid() || length != len - HEADER)
        log_warning("a message of %zu bytes was dropped: slurmd writes another head", len);
    else
        inbox->host->receive(inbox->host->arg, data + HEADER, length);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct connection *c = arg;
    if (evbuffer_get_length(bufferevent_get_input(bev)) > (size_t)LENGTH_MAX + HEADER) {
        log_warning("a message of slurmd was dropped: it has more than %u bytes",
                    (unsigned)LENGTH_MAX);
        drop(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct connection *c = arg;
    if (what & BEV_EVENT_EOF)
        deliver(c->inbox, bufferevent_get_input(bev));
    else
        log_warning("a message of slurmd broke off before its end");
    drop(c);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int addrlen, void *arg)
{
    struct inbox *inbox = arg;
    uid_t uid = local_peer(fd);
    const struct timeval timeout = {.tv_sec = MESSAGE_TIMEOUT_S};
    (void)listener;
    (void)addr;
    (void)addrlen;
    if (uid != getuid() || inbox->count >= CONNECTIONS_MAX) {
        /* Root's plugin of another step looks whether we are here; see listener.c. */
        log_write(uid == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
                  "a connection of uid %d was refused", (int)uid);
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    c->inbox = inbox;
    c->bev = bufferevent_socket_new(inbox->base, fd, BEV_OPT_CLOSE_ON_FREE);
    TAILQ_INSERT_TAIL(&inbox->open, c, entry);
    inbox->count++;
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    bufferevent_set_timeouts(c->bev, &timeout, NULL);
    bufferevent_enable(c->bev, EV_READ);
}

/* Else libevent tries again for ever, at once. */
static void on_refused(struct evconnlistener *listener, void *arg)
{
    (void)listener;
    (void)arg;
    if (errno == EMFILE || errno == ENFILE)
        limits_no_descriptors();
    log_warning("a message of slurmd cannot be accepted: %s", strerror(errno));
}

struct inbox *inbox_open(int fd, struct event_base *base, const struct rm_host *host)
{
    struct inbox *inbox = calloc(1, sizeof *inbox);
    inbox->host = host;
    inbox->base = base;
    TAILQ_INIT(&inbox->open);
    evutil_make_socket_nonblocking(fd);
    inbox->listener = evconnlistener_new(base, on_accept, inbox,
                                         LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (inbox->listener == NULL) {
        free(inbox);
        return NULL;
    }
    evconnlistener_set_error_cb(inbox->listener, on_refused);
    return inbox;
}

/* From now on connections are refused. Those that were made before are in the queue, and are taken.
 */
static void shut(struct inbox *inbox)
{
    int listener = evconnlistener_get_fd(inbox->listener), fd;
    evconnlistener_disable(inbox->listener);
    shutdown(listener, SHUT_RD);
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        on_accept(inbox->listener, fd, NULL, 0, inbox);
    inbox->is_shut = true;
}

bool inbox_shut(struct inbox *inbox, const char *path)
{
    int64_t now = now_ms();
    if (inbox->named_until == 0)
        inbox->named_until = now + NAMED_MS;
    if (!inbox->is_shut && now < inbox->named_until && access(path, F_OK) == 0)
        return true;
    if (!inbox->is_shut)
        shut(inbox);
    return inbox->count > 0;
}

void inbox_close(struct inbox *inbox)
{
    if (inbox == NULL)
        return;
    while (!TAILQ_EMPTY(&inbox->open))
        drop(TAILQ_FIRST(&inbox->open));
    evconnlistener_free(inbox->listener);
    free(inbox);
}
