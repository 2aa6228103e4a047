/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that strangers have made to this server, until a hello proves which server it is. */
#include "common/transport/direct/shake_private.h"

#include "common/util/log.h"
#include "common/util/owner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STRANGERS_MAX = 64,
    OF_ADDRESS_MAX = 16,  /* the step's other servers have an address each */
    OF_LOOPBACK_MAX = 64, /* of our own user alone: on one machine in tests */
    HELLO_MS = 2000,
    ACCEPTS = 16, /* until other events have their turn */
    PAUSE_MS = 200,
};

static void drop(struct stranger *s)
{
    struct shakes *shakes = s->shakes;
    TAILQ_REMOVE(&shakes->strangers, s, entry);
    shakes->nstrangers--;
    timer_stop(&s->late);
    if (s->event != NULL)
        event_free(s->event);
    if (s->fd >= 0)
        s->shakes->env.sockets->close(s->fd);
    free(s);
}

/* Once: what a stranger does costs no more than a line. */
static void refuse(struct stranger *s, const char *why)
{
    struct shakes *shakes = s->shakes;
    char text[INET6_ADDRSTRLEN];
    address_show(&s->address, text, sizeof text);
    log_write(shakes->told ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
              "transport: a direct connection from %s was refused: %s", text, why);
    shakes->told = true;
    drop(s);
}

static void known(struct stranger *s, uint32_t node)
{
    struct shakes *shakes = s->shakes;
    struct seal *seal = welcome_write(shakes->env.own, &s->talk);
    int fd = s->fd;
    if (seal == NULL ||
        !sockets_say(shakes->env.sockets, fd, s->talk.welcome, sizeof s->talk.welcome)) {
        shakes->env.own->seal->destroy(seal);
        drop(s);
        return;
    }
    event_free(s->event);
    s->event = NULL;
    s->fd = -1;
    drop(s);
    shakes->env.up(shakes->env.arg, node, fd, seal, false);
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    refuse(arg, "it does not say who it is");
}

static void on_hello(evutil_socket_t fd, short what, void *arg)
{
    struct stranger *s = arg;
    struct talk *talk = &s->talk;
    uint32_t node;
    (void)what;
    ssize_t n = recv(fd, talk->hello + s->got, sizeof talk->hello - s->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* it may have found us at another address, or have no need any more */
        drop(s);
        return;
    }
    s->got += (size_t)n;
    if (s->got < sizeof talk->hello)
        return;
    if (hello_read(s->shakes->env.own, talk, &node))
        known(s, node);
    else
        refuse(s, "it is no server of this step");
}

/* Makes room for one more. */
static void make_room(struct shakes *shakes, const struct address *address)
{
    const struct addresses one = {.n = 1, .list = {*address}};
    bool loop = address->len == 4 ? address->bytes[0] == 127
                                  : memcmp(address->bytes, &in6addr_loopback, 16) == 0;
    unsigned of_address = 0, most = loop ? OF_LOOPBACK_MAX : OF_ADDRESS_MAX;
    struct stranger *s, *oldest = NULL;
    TAILQ_FOREACH (s, &shakes->strangers, entry) {
        if (!addresses_have(&one, &s->address))
            continue;
        if (of_address++ == 0)
            oldest = s;
    }
    if (of_address >= most)
        drop(oldest);
    else if (shakes->nstrangers >= STRANGERS_MAX)
        drop(TAILQ_FIRST(&shakes->strangers));
}

/* Whether it came to an address that we have told of, and from no other user of this node. */
static bool may_come(const struct shakes *shakes, int fd, const struct address *from)
{
    struct sockaddr_storage sa;
    struct address to;
    socklen_t len = sizeof sa;
    bool loop =
        from->len == 4 ? from->bytes[0] == 127 : memcmp(from->bytes, &in6addr_loopback, 16) == 0;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0 ||
        !address_take((struct sockaddr *)&sa, &to) || !addresses_have(shakes->env.addresses, &to))
        return false;
    return !loop || owner_of(fd) != OWNER_OTHER;
}

static void take(struct shakes *shakes, int fd, const struct address *address)
{
    int on = 1;
    struct stranger *s = may_come(shakes, fd, address) ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        close(fd);
        return;
    }
    make_room(shakes, address);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    s->shakes = shakes;
    s->fd = fd;
    s->address = *address;
    TAILQ_INSERT_TAIL(&shakes->strangers, s, entry);
    shakes->nstrangers++;
    s->event = event_new(shakes->env.base, fd, EV_READ | EV_PERSIST, on_hello, s);
    timer_init(&s->late, shakes->env.timers, on_late, s);
    timer_after(&s->late, HELLO_MS);
    if (s->event == NULL || event_add(s->event, NULL) != 0 ||
        !shakes->env.own->seal->random(s->talk.challenge, sizeof s->talk.challenge) ||
        !sockets_say(shakes->env.sockets, fd, s->talk.challenge, sizeof s->talk.challenge))
        drop(s);
}

/* Strangers make room when there is no descriptor; else the listener rests, as it would be called
 * again at once. */
static void rest(struct shakes *shakes)
{
    if ((errno == EMFILE || errno == ENFILE) && shakes->nstrangers > 0)
        drop(TAILQ_FIRST(&shakes->strangers));
    event_del(shakes->listen);
    timer_after(&shakes->pause, PAUSE_MS);
}

static void on_accept(evutil_socket_t listener, short what, void *arg)
{
    struct shakes *shakes = arg;
    (void)what;
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage sa = {0};
        socklen_t len = sizeof sa;
        struct address address;
        int fd = accept4(listener, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        if (fd < 0) {
            rest(shakes);
            return;
        }
        if (address_take((struct sockaddr *)&sa, &address))
            take(shakes, fd, &address);
        else
            close(fd);
    }
}

static void on_pause(void *arg, struct timer *timer)
{
    const struct shakes *shakes = arg;
    (void)timer;
    event_add(shakes->listen, NULL);
}

bool callers_open(struct shakes *shakes)
{
    shakes->listen =
        event_new(shakes->env.base, shakes->env.listener, EV_READ | EV_PERSIST, on_accept, shakes);
    timer_init(&shakes->pause, shakes->env.timers, on_pause, shakes);
    return shakes->listen != NULL && event_add(shakes->listen, NULL) == 0;
}

void callers_close(struct shakes *shakes)
{
    while (!TAILQ_EMPTY(&shakes->strangers))
        drop(TAILQ_FIRST(&shakes->strangers));
    if (shakes->listen != NULL)
        event_free(shakes->listen);
    timer_stop(&shakes->pause);
    close(shakes->env.listener);
}
