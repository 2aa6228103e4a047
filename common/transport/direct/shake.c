/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that this server makes:
 *
 *   CONNECTING ── connected ──► CHALLENGE ── challenge came, hello sent ──► WELCOME ── it came ──►
 * up
 *
 * What goes wrong at one address is tried at the next. */
#include "common/transport/direct/shake_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRY_MS = 2000 /* for one address */ };

static void on_event(evutil_socket_t fd, short what, void *arg);
static timer_fire on_late;

static void drop(struct attempt *a)
{
    timer_stop(&a->late);
    if (a->event != NULL)
        event_free(a->event);
    a->event = NULL;
    if (a->fd >= 0)
        a->shakes->env.sockets->close(a->fd);
    a->fd = -1;
    a->shakes->env.own->seal->destroy(a->seal);
    a->seal = NULL;
}

static void forget(struct attempt *a)
{
    drop(a);
    LIST_REMOVE(a, entry);
    free(a);
}

/* Waits for what the state awaits. @return false: out of memory */
static bool await(struct attempt *a, enum attempt_state state)
{
    short what = state == ATTEMPT_CONNECTING ? EV_WRITE : EV_READ;
    a->state = state;
    a->got = 0;
    if (a->event != NULL)
        event_free(a->event);
    a->event = event_new(a->shakes->env.base, a->fd, what | EV_PERSIST, on_event, a);
    timer_init(&a->late, a->shakes->env.timers, on_late, a);
    timer_after(&a->late, TRY_MS);
    return a->event != NULL && event_add(a->event, NULL) == 0;
}

static int begin(struct attempt *a)
{
    struct sockaddr_storage sa;
    int on = 1;
    socklen_t len = address_give(&a->addresses.list[a->next++], a->port, &sa);
    a->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        return -1;
    setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (a->shakes->env.sockets->connect(a->fd, (struct sockaddr *)&sa, len) != 0 &&
        errno != EINPROGRESS)
        return -1;
    if (await(a, ATTEMPT_CONNECTING))
        return 0;
    errno = ENOMEM;
    return -1;
}

/* Goes on with the next address. @return false: there is none, and the attempt is gone */
static bool next_address(struct attempt *a, const char *why)
{
    struct shakes *shakes = a->shakes;
    char text[INET6_ADDRSTRLEN], last[160] = "";
    for (;;) {
        if (a->next > 0) {
            address_show(&a->addresses.list[a->next - 1], text, sizeof text);
            snprintf(last, sizeof last, "%s port %u: %s", text, a->port, why);
        }
        drop(a);
        if (a->next == a->addresses.n)
            break;
        if (begin(a) == 0)
            return true;
        why = strerror(errno);
    }
    uint32_t node = a->node;
    forget(a);
    shakes->env.failed(shakes->env.arg, node, last);
    return false;
}

static void connected(struct attempt *a)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error != 0)
        next_address(a, strerror(error));
    else if (!await(a, ATTEMPT_CHALLENGE))
        next_address(a, "out of memory");
}

static void challenged(struct attempt *a)
{
    const struct shake_env *env = &a->shakes->env;
    a->seal = hello_write(env->own, a->node, a->key, &a->talk);
    if (a->seal == NULL)
        next_address(a, "libcrypto makes no key pair");
    else if (!sockets_say(env->sockets, a->fd, a->talk.hello, sizeof a->talk.hello))
        next_address(a, "it does not take our name");
    else if (!await(a, ATTEMPT_WELCOME))
        next_address(a, "out of memory");
}

static void welcomed(struct attempt *a)
{
    struct shakes *shakes = a->shakes;
    struct seal *seal = a->seal;
    uint32_t node = a->node;
    int fd = a->fd;
    if (!welcome_read(shakes->env.own, a->key, &a->talk, seal)) {
        next_address(a, "something else than that server answers there");
        return;
    }
    a->fd = -1;
    a->seal = NULL;
    event_free(a->event);
    a->event = NULL;
    forget(a);
    shakes->env.up(shakes->env.arg, node, fd, seal, true);
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    next_address(arg, strerror(ETIMEDOUT));
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct attempt *a = arg;
    (void)what;
    if (a->state == ATTEMPT_CONNECTING) {
        connected(a);
        return;
    }
    /* No more than that is read: what comes behind it are records. */
    bool first = a->state == ATTEMPT_CHALLENGE;
    unsigned char *in = first ? a->talk.challenge : a->talk.welcome;
    size_t want = first ? sizeof a->talk.challenge : sizeof a->talk.welcome;
    ssize_t n = recv(fd, in + a->got, want - a->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        next_address(a, n == 0 ? "it closes the connection" : strerror(errno));
        return;
    }
    a->got += (size_t)n;
    if (a->got < want)
        return;
    if (first)
        challenged(a);
    else
        welcomed(a);
}

void shakes_connect(struct shakes *shakes, uint32_t node, const struct addresses *addresses,
                    uint16_t port, const unsigned char key[SEAL_SECRET])
{
    struct attempt *a = calloc(1, sizeof *a);
    if (a == NULL) {
        shakes->env.failed(shakes->env.arg, node, "out of memory");
        return;
    }
    a->shakes = shakes;
    a->node = node;
    a->addresses = *addresses;
    a->port = port;
    a->fd = -1;
    memcpy(a->key, key, SEAL_SECRET);
    addresses_sort(&a->addresses);
    LIST_INSERT_HEAD(&shakes->attempts, a, entry);
    next_address(a, "");
}

void shakes_give_up(struct shakes *shakes, uint32_t node)
{
    struct attempt *a;
    LIST_FOREACH (a, &shakes->attempts, entry)
        if (a->node == node)
            break;
    if (a != NULL)
        forget(a);
}

struct shakes *shakes_new(const struct shake_env *env)
{
    struct shakes *shakes = calloc(1, sizeof *shakes);
    if (shakes == NULL) {
        close(env->listener);
        return NULL;
    }
    shakes->env = *env;
    LIST_INIT(&shakes->attempts);
    TAILQ_INIT(&shakes->strangers);
    if (callers_open(shakes))
        return shakes;
    shakes_close(shakes);
    return NULL;
}

void shakes_close(struct shakes *shakes)
{
    if (shakes == NULL)
        return;
    while (!LIST_EMPTY(&shakes->attempts))
        forget(LIST_FIRST(&shakes->attempts));
    callers_close(shakes);
    free(shakes);
}
