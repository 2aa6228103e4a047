/* SPDX-License-Identifier: BSD-3-Clause */
/* See conns.h. shutdown() is here because libpmix calls it by its bare name, and so finds ours: the
 * program is searched first. */
#include "common/server/process/conns.h"

#include "common/server/process/rounds.h"
#include "common/util/proctab.h"
#include "common/util/states.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The task's own connection. */
enum own { OWN_NONE, OWN_OPEN, OWN_FINALIZED, OWN_STATES };
enum own_event { OWN_CONNECT, OWN_FINALIZE, OWN_CLOSE, OWN_EVENTS };
static const char *const own_names[OWN_STATES] = {"no connection", "connected", "finalized"};
static const char *const own_events[OWN_EVENTS] = {"connect", "finalize", "close"};
static const int own_table[OWN_STATES][OWN_EVENTS] = {
    /*                  CONNECT   FINALIZE       CLOSE */
    [OWN_NONE] = {OWN_OPEN, STATES_NONE, STATES_NONE},
    [OWN_OPEN] = {OWN_OPEN, OWN_FINALIZED, OWN_NONE},
    [OWN_FINALIZED] = {OWN_OPEN, STATES_NONE, OWN_NONE},
};
static const struct states own_life = {own_names, own_events, &own_table[0][0], OWN_EVENTS};

/* What a connection is to its rank. */
enum place {
    PLACE_OWN,
    PLACE_BESIDE,
    PLACE_PAST, /* its end has been told; libpmix has yet to close it */
};

struct conn {
    struct conn *next;
    int fd;
    uint32_t slot;
    enum place place;
    bool beside; /* it was when it came */
    struct ready {
        struct event *event; /* libpmix's */
        event_callback_fn callback;
        void *arg;
    } comes, goes; /* something may be read; written */
};

struct rank {
    enum own own;
    unsigned beside;    /* connections that are open beside it */
    unsigned finalized; /* processes that have finalized, and whose connections are open */
};

/* Only PMIx's thread changes it. The lock is for shutdown(), which any thread may call. */
static struct conns {
    pthread_mutex_t lock;
    uint32_t ntasks;
    struct rank *ranks;
    struct conn *list;
    unsigned hold, nheld;
    bool one_by_one;
    bool ending;             /* an end was let through, and its mark has not come round */
    _Atomic unsigned closed; /* connections that libpmix has closed */
    void (*on_end)(uint32_t slot, enum conns_end end);
} conns = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The connection whose events libpmix assigns next: first that for what comes. */
static _Thread_local struct conn *coming, *going;

void conns_open(uint32_t ntasks, unsigned hold, bool one_by_one,
                void (*on_end)(uint32_t slot, enum conns_end end))
{
    conns.ranks = calloc(ntasks, sizeof *conns.ranks);
    conns.ntasks = ntasks;
    conns.hold = hold;
    conns.one_by_one = one_by_one;
    conns.on_end = on_end;
}

void conns_close(void)
{
    while (conns.list != NULL) {
        struct conn *c = conns.list;
        conns.list = c->next;
        free(c);
    }
    free(conns.ranks);
    conns = (struct conns){.lock = PTHREAD_MUTEX_INITIALIZER};
}

static void move(uint32_t slot, enum own_event event)
{
    struct rank *rank = &conns.ranks[slot];
    int to = states_next(&own_life, (int)rank->own, event, "connection of task slot %u", slot);
    if (to != STATES_NONE)
        rank->own = (enum own)to;
}

/* Whether nothing more comes on a connection. */
static bool has_ended(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* With the lock. */
static enum conns_end end_of(uint32_t slot, enum place place)
{
    struct rank *rank = &conns.ranks[slot];
    bool own = place == PLACE_OWN;
    bool known = own && rank->own == OWN_FINALIZED;
    bool in_order = known || rank->finalized > 0;
    if (own)
        move(slot, OWN_CLOSE);
    else
        rank->beside--;
    if (in_order && !known)
        rank->finalized--;
    return own ? (in_order ? CONNS_OWN_FINALIZED : CONNS_OWN_CUT)
               : (in_order ? CONNS_BESIDE_FINALIZED : CONNS_BESIDE_CUT);
}

/* A connection has ended: says so once. */
static void ended(struct conn *c)
{
    pthread_mutex_lock(&conns.lock);
    enum place place = c->place;
    bool told = place == PLACE_OWN && conns.ranks[c->slot].own == OWN_FINALIZED;
    enum conns_end end = place == PLACE_PAST ? CONNS_OWN_FINALIZED : end_of(c->slot, place);
    c->place = PLACE_PAST;
    struct rank *rank = &conns.ranks[c->slot];
    /* With none beside any more, it is the task that has finalized. */
    bool own_too =
        place == PLACE_BESIDE && rank->beside == 0 && rank->finalized > 0 && rank->own == OWN_OPEN;
    if (own_too) {
        rank->finalized = 0;
        move(c->slot, OWN_FINALIZE);
    }
    pthread_mutex_unlock(&conns.lock);
    if (place != PLACE_PAST && !told)
        conns.on_end(c->slot, end);
    if (own_too)
        conns.on_end(c->slot, CONNS_OWN_FINALIZED);
}

static struct conn *find_own(uint32_t slot)
{
    struct conn *c = conns.list;
    while (c != NULL && (c->slot != slot || c->place != PLACE_OWN))
        c = c->next;
    return c;
}

bool conns_connected(uint32_t slot)
{
    if (slot >= conns.ntasks)
        return true;
    struct conn *old = find_own(slot), *c = calloc(1, sizeof *c);
    if (old != NULL && (conns.ranks[slot].own == OWN_FINALIZED || has_ended(old->fd)))
        ended(old); /* libpmix has yet to see it */
    pthread_mutex_lock(&conns.lock);
    struct rank *rank = &conns.ranks[slot];
    *c = (struct conn){.next = conns.list, .fd = -1, .slot = slot, .place = PLACE_OWN};
    if (rank->own == OWN_OPEN) {
        c->place = PLACE_BESIDE;
        c->beside = true;
        rank->beside++;
    } else {
        move(slot, OWN_CONNECT);
    }
    conns.list = coming = c;
    pthread_mutex_unlock(&conns.lock);
    return c->place == PLACE_OWN;
}

/* Whether the other side has closed. What it has sent before may still come. */
static bool has_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool conns_finalized(uint32_t slot, pid_t pid)
{
    if (slot >= conns.ntasks)
        return true;
    /* A process that finalizes waits for the answer. So the task is another one if it has gone.
     * Where it is just being killed, its children may hear of that before its connection closes. */
    struct conn *task = conns.ranks[slot].beside > 0 ? find_own(slot) : NULL;
    if (task != NULL && conns.ranks[slot].own == OWN_OPEN &&
        (has_gone(task->fd) || proctab_is_ending(pid)))
        ended(task);
    pthread_mutex_lock(&conns.lock);
    struct rank *rank = &conns.ranks[slot];
    bool own = rank->beside == 0;
    if (own && rank->own == OWN_OPEN)
        move(slot, OWN_FINALIZE);
    else if (!own)
        rank->finalized++;
    pthread_mutex_unlock(&conns.lock);
    return own;
}

static void on_mark(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    conns.ending = false;
}

/* libpmix's turn, which may end the connection: it then closes it within the callback. Looking at
 * each before would be a system call more for each message. */
static void let_through(int fd, short what, const struct ready *ready)
{
    const struct timeval now = {0, 0};
    struct event_base *base = event_get_base(ready->event);
    unsigned closed = conns.closed;
    if (conns.ending && has_gone(fd))
        return;
    ready->callback(fd, what, ready->arg); /* which may free the connection */
    if (conns.one_by_one && conns.closed != closed && !conns.ending)
        conns.ending = event_base_once(base, -1, EV_TIMEOUT, on_mark, NULL, &now) == 0;
}

/* In the place of libpmix's callback. @thread PMIx's */
static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    if (!c->beside || conns.nheld >= conns.hold || !has_ended(fd)) {
        let_through(fd, what, &c->comes);
        return;
    }
    event_del(c->comes.event);
    conns.nheld++;
    rounds_left(fd);
    ended(c);
}

/* The same of what libpmix has to send: it would learn of the end by that. @thread PMIx's */
static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    bool is_held = c->beside && c->place == PLACE_PAST;
    if (!is_held && (!c->beside || conns.nheld >= conns.hold || !has_gone(fd)))
        let_through(fd, what, &c->goes);
    else
        event_del(c->goes.event);
}

static void put(struct ready *ready, struct event *ev, event_callback_fn mine, struct conn *c,
                event_callback_fn *callback, void **arg)
{
    *ready = (struct ready){ev, *callback, *arg};
    *callback = mine;
    *arg = c;
}

void conns_assigned(struct event *ev, int fd, short events, event_callback_fn *callback, void **arg)
{
    struct conn *c = coming, *next = going;
    if (fd < 0)
        return;
    if (c != NULL && (events & EV_READ) != 0) {
        coming = going = NULL;
        pthread_mutex_lock(&conns.lock);
        c->fd = fd;
        pthread_mutex_unlock(&conns.lock);
        if ((!c->beside || conns.hold == 0) && !conns.one_by_one)
            return;
        going = c;
        put(&c->comes, ev, on_ready, c, callback, arg);
    } else if (next != NULL && next->fd == fd && (events & EV_WRITE) != 0) {
        going = NULL;
        put(&next->goes, ev, on_writable, next, callback, arg);
    }
}

/* libpmix closes a connection: of those that it has taken for open before, too. */
static void forget(int fd)
{
    pthread_mutex_lock(&conns.lock);
    struct conn **at = &conns.list;
    while (*at != NULL && (*at)->fd != fd)
        at = &(*at)->next;
    struct conn *c = *at;
    if (c != NULL)
        *at = c->next;
    pthread_mutex_unlock(&conns.lock);
    if (c == NULL)
        return;
    conns.closed++;
    ended(c);
    going = c == going ? NULL : going;
    free(c);
}

/* @thread any */
int shutdown(int fd, int how)
{
    typedef int shutdown_fn(int, int);
    static _Thread_local shutdown_fn *next;
    if (next == NULL)
        next = (shutdown_fn *)(uintptr_t)dlsym(RTLD_NEXT, "shutdown");
    if (how == SHUT_RDWR && fd >= 0)
        forget(fd);
    return next(fd, how);
}
