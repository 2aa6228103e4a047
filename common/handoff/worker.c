/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A queue, and the thread that works it off. The first work stays in the queue while its call is
 * made. Of the owner and the thread, the last one frees the worker.
 */
#include "common/handoff/worker.h"

#include "common/util/clock.h"
#include "common/util/thread.h"

#include <pthread.h>
#include <stdlib.h>

struct worker {
    const struct work_ops *ops;
    worker_post_fn *post;
    struct handoff *handoff;
    pthread_t thread;
    bool started; /* the owner's */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    struct work *first, **end;
    bool finishing, closed; /* by the owner: once the queue is empty, and at once */
    bool deserted, ended;   /* by the owner, who waits no more; by the thread */
};

struct worker *worker_make(const struct work_ops *ops, worker_post_fn *post,
                           struct handoff *handoff)
{
    struct worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->ops = ops;
    w->post = post;
    w->handoff = handoff;
    w->end = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    return w;
}

/* @thread any, locked */
static struct work *take_first(struct worker *w)
{
    struct work *work = w->first;
    w->first = work->next;
    if (w->first == NULL)
        w->end = &w->first;
    return work;
}

static void destroy(struct worker *w)
{
    while (w->first != NULL)
        w->ops->drop(take_first(w));
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wake);
    free(w);
}

/* @thread its own, locked; unlocks while it works */
static void work_off(struct worker *w)
{
    struct work *work = w->first;
    pthread_mutex_unlock(&w->lock);
    w->ops->call(work);
    pthread_mutex_lock(&w->lock);
    if (w->closed)
        return; /* the last one drops it */
    take_first(w);
    if (w->post != NULL)
        w->post(w->handoff, &work->item, w->ops->done);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->closed && (w->first != NULL || !w->finishing)) {
        if (w->first != NULL)
            work_off(w);
        else
            pthread_cond_wait(&w->wake, &w->lock);
    }
    bool last = w->deserted;
    w->ended = true;
    pthread_mutex_unlock(&w->lock);
    if (last)
        destroy(w);
    return NULL;
}

/* Whoever closes the worker may have to leave its thread behind. */
static bool start(struct worker *w)
{
    return thread_stay_loaded() && thread_start(&w->thread, run, w) == 0;
}

bool worker_do(struct worker *w, struct work *work)
{
    w->started = w->started || start(w);
    if (!w->started)
        return false;
    work->next = NULL;
    work->since = now_ms();
    pthread_mutex_lock(&w->lock);
    *w->end = work;
    w->end = &work->next;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return true;
}

int64_t worker_since(const struct worker *worker)
{
    struct worker *w = (struct worker *)worker;
    pthread_mutex_lock(&w->lock);
    int64_t since = w->first != NULL ? w->first->since : 0;
    pthread_mutex_unlock(&w->lock);
    return since;
}

/* @return whether the thread was left behind: it owns the worker then */
static bool desert(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    w->deserted = !w->ended;
    bool deserted = w->deserted;
    pthread_cond_signal(&w->wake);
    if (deserted)
        pthread_detach(w->thread);
    pthread_mutex_unlock(&w->lock);
    return deserted;
}

static bool end(struct worker *w, int64_t by)
{
    if (w->started && !thread_join_until(w->thread, by)) {
        if (desert(w))
            return false;
        pthread_join(w->thread, NULL); /* it has done all but return */
    }
    destroy(w);
    return true;
}

bool worker_close(struct worker *w, int64_t by)
{
    if (w == NULL)
        return true;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return end(w, by);
}

bool worker_finish(struct worker *w, int64_t by)
{
    pthread_mutex_lock(&w->lock);
    w->finishing = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return end(w, by);
}
