/* SPDX-License-Identifier: BSD-3-Clause */
/* The proxy: connects its two sides, and does with the bytes of the first connection what is asked.
 */
#include "common/transport/direct/test_kit.h"

#include "common/util/test_cmocka.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct proxied {
    struct proxied *next;
    struct kit_proxy *proxy;
    unsigned number;
    int fds[2]; /* the one who has connected, and the server */
    struct event *events[2];
    bool ended[2];
};

static void cut(struct proxied *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->events[i] != NULL)
            event_free(p->events[i]);
        p->events[i] = NULL;
        if (p->fds[i] >= 0)
            close(p->fds[i]);
        p->fds[i] = -1;
    }
}

/* Does what the test asks for. @return bytes that are handed on; -1: the connection is cut */
static ssize_t meddle(struct proxied *p, int side, unsigned char *data, ssize_t n)
{
    struct kit_proxy *proxy = p->proxy;
    size_t at = proxy->seen[side];
    if (p->number != 1)
        return n;
    for (ssize_t i = 0; i < n && side == 0 && at + (size_t)i < sizeof proxy->heard; i++)
        proxy->heard[at + (size_t)i] = data[i];
    proxy->seen[side] += (size_t)n;
    if (side == proxy->flip_side && proxy->flip_at >= at && proxy->flip_at < proxy->seen[side])
        data[proxy->flip_at - at] ^= 4;
    if (side == proxy->stop_side && proxy->seen[side] > proxy->cut_at)
        return 0;
    if (side == proxy->cut_side && proxy->seen[side] >= proxy->cut_at)
        return at < proxy->cut_at ? (ssize_t)(proxy->cut_at - at) : -1;
    return n;
}

static void on_bytes(evutil_socket_t fd, short what, void *arg)
{
    struct proxied *p = arg;
    int side = fd == p->fds[0] ? 0 : 1, other = p->fds[1 - side];
    unsigned char data[65536];
    (void)what;
    ssize_t n = read(fd, data, sizeof data);
    if (n <= 0) {
        p->ended[side] = true;
        event_del(p->events[side]);
        shutdown(other, SHUT_WR);
        if (n < 0 || p->ended[1 - side])
            cut(p);
        return;
    }
    ssize_t on = meddle(p, side, data, n);
    for (ssize_t done = 0; done < on;) {
        ssize_t w = send(other, data + done, (size_t)(on - done), MSG_NOSIGNAL);
        if (w < 0 && errno != EAGAIN)
            break;
        done += w > 0 ? w : 0;
    }
    if (on < 0 || (p->number == 1 && side == p->proxy->cut_side && on < n) ||
        (p->number == 1 && side == p->proxy->cut_side && p->proxy->seen[side] == p->proxy->cut_at))
        cut(p);
}

static void on_accept(evutil_socket_t listener, short what, void *arg)
{
    struct kit_proxy *proxy = arg;
    struct address to = {.len = 4, .bytes = {127, 0, 0, 1}};
    struct sockaddr_storage sa;
    struct proxied *p = calloc(1, sizeof *p);
    (void)what;
    p->proxy = proxy;
    p->number = ++proxy->connections;
    p->fds[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    p->fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = address_give(&to, proxy->behind, &sa);
    assert_true(p->fds[0] >= 0);
    p->next = proxy->first;
    proxy->first = p;
    if (connect(p->fds[1], (struct sockaddr *)&sa, len) != 0) {
        cut(p);
        return;
    }
    evutil_make_socket_nonblocking(p->fds[1]);
    for (int i = 0; i < 2; i++) {
        p->events[i] = event_new(proxy->base, p->fds[i], EV_READ | EV_PERSIST, on_bytes, p);
        event_add(p->events[i], NULL);
    }
}

void proxy_open(struct kit_proxy *proxy, uint32_t server)
{
    struct direct *d = kit.servers[server].direct;
    struct addresses at = {.n = 1, .list = {{.len = 4, .bytes = {127, 0, 0, 1}}}};
    struct err err;
    *proxy = (struct kit_proxy){
        .base = kit.base, .cut_side = -1, .flip_side = -1, .stop_side = -1, .behind = d->port};
    proxy->listener = addresses_listen(&at, 0, 1, &proxy->port, &err);
    assert_true(proxy->listener >= 0);
    proxy->accept = event_new(kit.base, proxy->listener, EV_READ | EV_PERSIST, on_accept, proxy);
    event_add(proxy->accept, NULL);
    d->port = proxy->port;
}

void proxy_close(struct kit_proxy *proxy)
{
    event_free(proxy->accept);
    close(proxy->listener);
    while (proxy->first != NULL) {
        struct proxied *p = proxy->first;
        proxy->first = p->next;
        cut(p);
        free(p);
    }
}
