/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The queue is a list under a mutex. An eventfd wakes the loop for the first item that is not to
 * wait. It is watched for writes to it (EV_ET), not for being readable: no thread has to read it.
 */
#include "common/handoff/handoff.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct handoff {
    pthread_mutex_t lock;
    struct handoff_item *head, **tail;
    bool woken; /* the loop will run the queue */
    int fd;     /* eventfd; once readable it stays so */
    struct event *event;
};

void handoff_run(struct handoff *handoff)
{
    pthread_mutex_lock(&handoff->lock);
    struct handoff_item *item = handoff->head;
    handoff->head = NULL;
    handoff->tail = &handoff->head;
    handoff->woken = false;
    pthread_mutex_unlock(&handoff->lock);
    while (item != NULL) {
        struct handoff_item *next = item->next;
        item->run(item);
        item = next;
    }
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    handoff_run(arg);
}

struct handoff *handoff_new(struct event_base *base)
{
    struct handoff *handoff = calloc(1, sizeof *handoff);
    if (handoff == NULL)
        return NULL;
    pthread_mutex_init(&handoff->lock, NULL);
    handoff->tail = &handoff->head;
    handoff->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    handoff->event = event_new(base, handoff->fd, EV_READ | EV_PERSIST | EV_ET, on_wake, handoff);
    if (handoff->fd < 0 || handoff->event == NULL || event_add(handoff->event, NULL) != 0) {
        handoff_free(handoff);
        return NULL;
    }
    return handoff;
}

/* @return whether the loop has to be woken for it */
static bool append(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run,
                   bool waits)
{
    item->run = run;
    item->next = NULL;
    pthread_mutex_lock(&handoff->lock);
    bool wake = !waits && !handoff->woken;
    handoff->woken |= wake;
    *handoff->tail = item;
    handoff->tail = &item->next;
    pthread_mutex_unlock(&handoff->lock);
    return wake;
}

void handoff_post(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run)
{
    const uint64_t one = 1;
    /* Cannot fail: the counter never comes near its limit. */
    if (append(handoff, item, run, false) && write(handoff->fd, &one, sizeof one) < 0)
        abort();
}

void handoff_post_behind(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run)
{
    append(handoff, item, run, true);
}

void handoff_free(struct handoff *handoff)
{
    if (handoff == NULL)
        return;
    if (handoff->event != NULL)
        event_free(handoff->event);
    if (handoff->fd >= 0)
        close(handoff->fd);
    pthread_mutex_destroy(&handoff->lock);
    free(handoff);
}
