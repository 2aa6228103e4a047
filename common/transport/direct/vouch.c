/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders in a queue, one thread that works them off, and an eventfd that tells the loop. */
#include "common/transport/direct/vouch.h"

#include "common/util/clock.h"
#include "common/util/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { END_MS = 50 /* for a thread between two orders; one in an order is left alone */ };

struct order {
    struct order *next;
    enum vouch_order what;
    uint32_t node;
    int64_t since;
    bool done; /* out is the result, unless it failed */
    struct wire_out out;
    size_t len;
    unsigned char data[];
};

/* Shared by the loop and the thread; the last of the two frees it. */
struct voucher {
    struct vouch_ops ops;
    vouch_done_fn *done;
    void *arg;
    struct event *event;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    struct order *orders; /* the first ones are done */
    bool closed, ended;   /* by the loop; by the thread */
    int fd;               /* eventfd: an order is done */
};

static void free_orders(struct order *o)
{
    while (o != NULL) {
        struct order *next = o->next;
        wire_out_free(&o->out);
        free(o);
        o = next;
    }
}

static void destroy(struct voucher *v)
{
    free_orders(v->orders);
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->wake);
    close(v->fd);
    free(v);
}

/* @thread its own, locked; unlocks while it works */
static void work(struct voucher *v, struct order *o)
{
    uint64_t one = 1;
    struct wire_out out = {0};
    pthread_mutex_unlock(&v->lock);
    bool good = (o->what == VOUCH_SEAL ? v->ops.seal : v->ops.open)(o->data, o->len, &out);
    if (!good || out.failed)
        wire_out_free(&out);
    pthread_mutex_lock(&v->lock);
    o->out = out;
    o->done = true;
    if (write(v->fd, &one, sizeof one) < 0)
        abort(); /* the counter never comes near its limit */
}

static void *run(void *arg)
{
    struct voucher *v = arg;
    pthread_mutex_lock(&v->lock);
    while (!v->closed) {
        struct order *o = v->orders;
        while (o != NULL && o->done)
            o = o->next;
        if (o != NULL)
            work(v, o);
        else
            pthread_cond_wait(&v->wake, &v->lock);
    }
    bool last = v->ended;
    v->ended = true;
    pthread_mutex_unlock(&v->lock);
    if (last)
        destroy(v);
    return NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
    struct voucher *v = arg;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) < 0)
        return;
    pthread_mutex_lock(&v->lock);
    while (v->orders != NULL && v->orders->done) {
        struct order *o = v->orders;
        v->orders = o->next;
        o->next = NULL;
        pthread_mutex_unlock(&v->lock);
        v->done(v->arg, o->what, o->node, o->out.data, o->out.len);
        free_orders(o);
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
}

struct voucher *voucher_new(const struct vouch_ops *ops, struct event_base *base,
                            vouch_done_fn *done, void *arg)
{
    struct voucher *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->ops = *ops;
    v->done = done;
    v->arg = arg;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->wake, NULL);
    v->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    v->event = v->fd < 0 ? NULL : event_new(base, v->fd, EV_READ | EV_PERSIST, on_done, v);
    if (v->event != NULL && event_add(v->event, NULL) == 0)
        return v;
    voucher_free(v);
    return NULL;
}

static bool start(struct voucher *v)
{
    v->started = v->started || thread_start(&v->thread, run, v) == 0;
    return v->started;
}

bool voucher_order(struct voucher *v, enum vouch_order order, uint32_t node, const void *data,
                   size_t len)
{
    struct order *o = malloc(sizeof *o + len), **end = &v->orders;
    if (o == NULL || !start(v)) {
        free(o);
        return false;
    }
    *o = (struct order){.what = order, .node = node, .since = now_ms(), .len = len};
    memcpy(o->data, data, len);
    pthread_mutex_lock(&v->lock);
    while (*end != NULL)
        end = &(*end)->next;
    *end = o;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
    return true;
}

int64_t voucher_waits_since(const struct voucher *v)
{
    struct voucher *w = (struct voucher *)v;
    pthread_mutex_lock(&w->lock);
    int64_t since = v->orders != NULL ? v->orders->since : 0;
    pthread_mutex_unlock(&w->lock);
    return since;
}

void voucher_free(struct voucher *v)
{
    if (v == NULL)
        return;
    if (v->event != NULL)
        event_free(v->event);
    pthread_mutex_lock(&v->lock);
    v->closed = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
    if (v->started && !thread_join_until(v->thread, now_ms() + END_MS)) {
        pthread_detach(v->thread);
        pthread_mutex_lock(&v->lock);
        bool last = v->ended;
        v->ended = true;
        pthread_mutex_unlock(&v->lock);
        if (!last)
            return;
    }
    destroy(v);
}
