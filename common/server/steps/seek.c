/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of calls that wait, each with two deadlines; see seek.h. */
#include "common/server/steps/seek.h"

#include <stdlib.h>

struct seeks {
    struct seek_env env;
    LIST_HEAD(, seek_wait) waits;
    bool closing;
};

struct seeks *seeks_new(const struct seek_env *env)
{
    struct seeks *seeks = calloc(1, sizeof *seeks);
    seeks->env = *env;
    return seeks;
}

static bool knows_all(const struct seeks *seeks, const struct procset *set)
{
    for (uint32_t i = 0; i < set->nparts; i++)
        if (!seeks->env.knows(seeks->env.arg, set->parts[i].nspace))
            return false;
    return true;
}

static bool is_waiting(const struct seeks *seeks, const struct seek_wait *wait)
{
    const struct seek_wait *w;
    LIST_FOREACH (w, &seeks->waits, entry)
        if (w == wait)
            return true;
    return false;
}

static void finish(struct seek_wait *wait)
{
    LIST_REMOVE(wait, entry);
    timer_stop(&wait->until);
    timer_stop(&wait->ask);
    wait->done(wait);
}

/* The first one of which @p is_over says so is finished, and again, as done() may do anything. */
static void finish_all(struct seeks *seeks,
                       bool (*is_over)(const struct seeks *seeks, const struct seek_wait *wait,
                                       const void *arg),
                       const void *arg)
{
    struct seek_wait *wait = seeks != NULL ? LIST_FIRST(&seeks->waits) : NULL;
    while (wait != NULL) {
        bool over = is_over(seeks, wait, arg);
        struct seek_wait *next = LIST_NEXT(wait, entry);
        if (over)
            finish(wait);
        wait = over ? LIST_FIRST(&seeks->waits) : next;
    }
}

/* find() may end the wait, and with it the set. */
static void ask(struct seeks *seeks, struct seek_wait *wait)
{
    timer_stop(&wait->ask);
    for (uint32_t i = 0; is_waiting(seeks, wait) && i < wait->set->nparts; i++)
        if (!seeks->env.knows(seeks->env.arg, wait->set->parts[i].nspace))
            seeks->env.find(seeks->env.arg, wait->set->parts[i].nspace);
}

static void on_ask(void *arg, struct timer *timer)
{
    ask(arg, TIMER_OF(timer, struct seek_wait, ask));
}

static void on_late(void *arg, struct timer *timer)
{
    (void)timer;
    finish(arg);
}

void seek_begin(struct seeks *seeks, struct seek_wait *wait, int64_t ms)
{
    if (seeks == NULL || seeks->closing || knows_all(seeks, wait->set)) {
        wait->done(wait);
        return;
    }
    timer_init(&wait->until, seeks->env.timers, on_late, wait);
    timer_after(&wait->until, ms < SEEK_WAIT_MS ? ms : SEEK_WAIT_MS);
    timer_init(&wait->ask, seeks->env.timers, on_ask, seeks);
    timer_after(&wait->ask, SEEK_SELF_MS);
    LIST_INSERT_HEAD(&seeks->waits, wait, entry);
    if (seeks->env.is_speaker(seeks->env.arg, wait->set))
        ask(seeks, wait);
}

static bool is_known(const struct seeks *seeks, const struct seek_wait *wait, const void *arg)
{
    (void)arg;
    return knows_all(seeks, wait->set);
}

void seek_learnt(struct seeks *seeks)
{
    finish_all(seeks, is_known, NULL);
}

static bool has_name(const struct seeks *seeks, const struct seek_wait *wait, const void *name)
{
    (void)seeks;
    return procset_has_of(wait->set, name);
}

void seek_failed(struct seeks *seeks, const char *name)
{
    finish_all(seeks, has_name, name);
}

void seeks_close(struct seeks *seeks)
{
    if (seeks == NULL)
        return;
    seeks->closing = true;
    while (!LIST_EMPTY(&seeks->waits))
        finish(LIST_FIRST(&seeks->waits));
}

void seeks_free(struct seeks *seeks)
{
    free(seeks);
}
