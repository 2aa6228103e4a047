/* SPDX-License-Identifier: BSD-3-Clause */
/* event_assign(), which libpmix calls by its bare name and so finds here, as the program is
 * searched first. See expiry.h.
 *
 * libpmix before 7 sets the timer of a connect anew for each local caller that gives PMIX_TIMEOUT,
 * and 4.2 that of a group, too. It does so without taking the old one away. Then libevent's heap
 * has the event twice, and its loop never comes to an end once that time has come. So a timer that
 * is set again is taken away here first.
 *
 * connect_reply.h has another use of this function.
 *
 * A libpmix with a libevent of its own within does not come here. */
#include "common/server/process/expiry.h"

#include "common/server/process/connect_reply.h"
#include "common/server/process/conns.h"

#include <dlfcn.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

typedef int assign_fn(struct event *, struct event_base *, evutil_socket_t, short,
                      event_callback_fn, void *);

/* The last timers that this thread has set of objects that contain them, as libpmix's do. Most of
 * these objects have been freed since. */
enum { KEPT = 64, OBJECT_MAX = 4096 };
static _Thread_local struct timer {
    struct event *event;
    struct event_base *base;
    void *object;
} timers[KEPT];
static _Thread_local unsigned ntimers;
static _Thread_local const void *handed_up; /* until this thread assigns an event again */

/* The memory of an event that was never assigned may hold anything. So the base is compared before
 * event_pending() takes its lock. */
static void take_away(const struct timer *t)
{
    if (event_get_base(t->event) == t->base && event_get_callback_arg(t->event) == t->object &&
        event_get_fd(t->event) == -1 && event_pending(t->event, EV_TIMEOUT, NULL))
        event_del(t->event);
}

void expiry_handed_up(const void *cbdata)
{
    handed_up = cbdata;
    for (unsigned i = 0; i < KEPT; i++)
        if (timers[i].object == cbdata) {
            take_away(&timers[i]);
            timers[i].object = NULL;
        }
}

static void never(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* @thread any */
int event_assign(struct event *ev, struct event_base *base, evutil_socket_t fd, short events,
                 event_callback_fn callback, void *arg)
{
    static _Thread_local assign_fn *assign;
    const struct timer t = {.event = ev, .base = base, .object = arg};
    if (assign == NULL)
        assign = (assign_fn *)(uintptr_t)dlsym(RTLD_NEXT, "event_assign");
    if (fd == -1 && events == 0 && arg != NULL && (char *)ev >= (char *)arg &&
        (char *)ev < (char *)arg + OBJECT_MAX) {
        take_away(&t);
        if (arg == handed_up)
            callback = never;
        else
            timers[ntimers++ % KEPT] = t;
    }
    handed_up = NULL;
    connect_reply_shift(fd, events, &callback, &arg);
    conns_assigned(ev, fd, events, &callback, &arg);
    return assign(ev, base, fd, events, callback, arg);
}
