/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Handles: a connection to a broker, or a module's way to its own.
 */
#include "shims/flux/standin/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void (*sink)(int level, const char *text);

static flux_t *handle_new(const char *uri)
{
    flux_t *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->fd = -1;
    h->uri = strdup(uri);
    h->in = evbuffer_new();
    h->conf = calloc(1, sizeof(*h->conf));
    if (h->conf)
        *h->conf = (flux_conf_t){.refs = 1, .table = json_object_new_object()};
    if (h->uri && h->in && h->conf && h->conf->table)
        return h;
    flux_close(h);
    errno = ENOMEM;
    return NULL;
}

flux_t *standin_handle(const struct standin_broker *broker)
{
    flux_t *h = handle_new(broker->uri);
    if (h) {
        h->broker = broker;
        h->base = broker->base;
    }
    return h;
}

/* local://PATH, or fd://N of a socket that is connected to one. */
static int connect_to(const char *uri)
{
    static const char scheme[] = "local://";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd, saved;
    if (sscanf(uri, "fd://%d", &fd) == 1)
        return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 ? fd : -1;
    if (strncmp(uri, scheme, strlen(scheme)) != 0 ||
        strlen(uri + strlen(scheme)) >= sizeof(addr.sun_path)) {
        errno = EINVAL;
        return -1;
    }
    strcpy(addr.sun_path, uri + strlen(scheme));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

flux_t *flux_open_ex(const char *uri, int flags, flux_error_t *error)
{
    flux_t *h = handle_new(uri);
    (void)flags;
    if (h)
        h->fd = connect_to(uri);
    if (h && h->fd >= 0)
        return h;
    if (error)
        snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
    flux_close(h);
    return NULL;
}

void flux_close(flux_t *h)
{
    int saved = errno;
    if (!h)
        return;
    if (h->fd >= 0)
        close(h->fd);
    if (h->in)
        evbuffer_free(h->in);
    if (!h->broker && h->base)
        event_base_free(h->base);
    flux_conf_decref(h->conf);
    free(h->subscribed);
    free(h->uri);
    free(h);
    errno = saved;
}

struct event_base *standin_base(flux_t *h)
{
    if (!h->base)
        h->base = event_base_new();
    return h->base;
}

/* The broker takes what comes whatever it has to send, so this does not wait for long. */
static int write_out(flux_t *h, struct evbuffer *out)
{
    while (evbuffer_get_length(out) > 0) {
        struct pollfd ready = {h->fd, POLLOUT, 0};
        if (evbuffer_write(out, h->fd) >= 0)
            continue;
        if (errno != EAGAIN && errno != EINTR)
            return -1;
        poll(&ready, 1, -1);
    }
    return 0;
}

int flux_send(flux_t *h, const flux_msg_t *msg, int flags)
{
    (void)flags;
    if (h->broker)
        return h->broker->send(h->broker->arg, msg);
    struct evbuffer *out = evbuffer_new();
    if (!out || standin_msg_put(out, msg) < 0) {
        if (out)
            evbuffer_free(out);
        errno = ENOMEM;
        return -1;
    }
    int rc = write_out(h, out);
    evbuffer_free(out);
    return rc;
}

flux_msg_t *flux_recv(flux_t *h, struct flux_match match, int flags)
{
    for (;;) {
        flux_msg_t *msg = standin_msg_take(h->in);
        struct pollfd ready = {h->fd, POLLIN, 0};
        if (msg && (msg->head.type & match.typemask) != 0)
            return msg;
        if (!msg && errno != EAGAIN)
            return NULL;
        flux_msg_destroy(msg);
        if (msg)
            continue;
        int n = evbuffer_read(h->in, h->fd, -1);
        if (n > 0)
            continue;
        if (n == 0)
            errno = ECONNRESET;
        if (n == 0 || (errno != EAGAIN && errno != EINTR) || (flags & FLUX_O_NONBLOCK) != 0)
            return NULL;
        poll(&ready, 1, -1);
    }
}

flux_reactor_t *flux_get_reactor(flux_t *h)
{
    return (flux_reactor_t *)standin_base(h);
}

int flux_reactor_run(flux_reactor_t *r, int flags)
{
    (void)flags;
    return event_base_dispatch((struct event_base *)r) < 0 ? -1 : 0;
}

/* A connection does not know: nothing of muster's asks there. */
static int of_broker(const flux_t *h, bool rank, uint32_t *value)
{
    if (!h->broker) {
        errno = ENOSYS;
        return -1;
    }
    *value = rank ? h->broker->rank : h->broker->size;
    return 0;
}

int flux_get_rank(flux_t *h, uint32_t *rank)
{
    return of_broker(h, true, rank);
}

int flux_get_size(flux_t *h, uint32_t *size)
{
    return of_broker(h, false, size);
}

const char *flux_attr_get(flux_t *h, const char *name)
{
    if (strcmp(name, "local-uri") == 0)
        return h->uri;
    errno = ENOENT;
    return NULL;
}

void standin_log_to(void (*its)(int level, const char *text))
{
    sink = its;
}

int flux_log(flux_t *h, int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    (void)h;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (sink)
        sink(level, text);
    return 0;
}
