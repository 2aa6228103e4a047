/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of calls that wait, each with two deadlines; see seek.h. */
#include "common/server/steps/seek.h"

#include "common/util/clock.h"

#include <stdlib.h>
#include <string.h>

struct seeks {
    struct seek_env env;
    LIST_HEAD(, seek_wait) waits;
    bool closing;
};

struct seeks *seeks_new(const struct seek_env *env)
{
    struct seeks *seeks = calloc(1, sizeof *seeks);
    if (seeks != NULL)
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
    wait->ask = 0;
    for (uint32_t i = 0; is_waiting(seeks, wait) && i < wait->set->nparts; i++)
        if (!seeks->env.knows(seeks->env.arg, wait->set->parts[i].nspace))
            seeks->env.find(seeks->env.arg, wait->set->parts[i].nspace);
}

void seek_begin(struct seeks *seeks, struct seek_wait *wait, int64_t ms)
{
    if (seeks == NULL || seeks->closing || knows_all(seeks, wait->set)) {
        wait->done(wait);
        return;
    }
    int64_t now = seeks->env.now(seeks->env.arg);
    wait->until = now + (ms < SEEK_WAIT_MS ? ms : SEEK_WAIT_MS);
    wait->ask = now + SEEK_SELF_MS;
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

int64_t seek_next(const struct seeks *seeks)
{
    int64_t at = 0;
    const struct seek_wait *wait;
    if (seeks == NULL)
        return -1;
    LIST_FOREACH (wait, &seeks->waits, entry)
        at = earlier(at, earlier(wait->until, wait->ask));
    return ms_until(at, seeks->env.now(seeks->env.arg));
}

static bool is_late(const struct seeks *seeks, const struct seek_wait *wait, const void *arg)
{
    (void)seeks;
    return wait->until <= *(const int64_t *)arg;
}

void seek_tick(struct seeks *seeks)
{
    if (seeks == NULL)
        return;
    int64_t now = seeks->env.now(seeks->env.arg);
    finish_all(seeks, is_late, &now);
    struct seek_wait *wait = LIST_FIRST(&seeks->waits);
    while (wait != NULL) {
        bool due = wait->ask != 0 && wait->ask <= now;
        struct seek_wait *next = LIST_NEXT(wait, entry);
        if (due)
            ask(seeks, wait);
        wait = due ? LIST_FIRST(&seeks->waits) : next;
    }
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
