/* SPDX-License-Identifier: BSD-3-Clause */
/* Time, events and messages. Nothing happens but by an event or a server's own timer. */
#include "ci/campaign.d/holders/holders.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { YOUNG_NAP_MS = 50, TICKS_MAX = 100000 };

uint32_t dice(struct world *world, uint32_t n)
{
    return loopback_below(&world->random, n);
}

bool likely(struct world *world, uint32_t percent)
{
    return dice(world, 100) < percent;
}

void world_trace(const struct world *world, const char *fmt, ...)
{
    va_list ap;
    if (!world->verbose)
        return;
    fprintf(stderr, "%8llu ", (unsigned long long)world->now);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void world_fault(struct world *world, const char *invariant, const char *fmt, ...)
{
    va_list ap;
    if (world->fault[0] != '\0')
        return;
    int n = snprintf(world->fault, sizeof world->fault, "%s: ", invariant);
    va_start(ap, fmt);
    vsnprintf(world->fault + n, sizeof world->fault - (size_t)n, fmt, ap);
    va_end(ap);
    world_trace(world, "FAULT %s", world->fault);
}

static void insert(struct world *world, struct event *event)
{
    struct event *before = TAILQ_LAST(&world->events, events);
    while (before != NULL && before->at > event->at)
        before = TAILQ_PREV(before, events, link);
    if (before != NULL)
        TAILQ_INSERT_AFTER(&world->events, before, event, link);
    else
        TAILQ_INSERT_HEAD(&world->events, event, link);
}

struct event *later(struct world *world, uint64_t ms, void (*run)(struct event *event))
{
    struct event *event = calloc(1, sizeof *event);
    if (event == NULL)
        abort();
    event->at = world->now + ms;
    event->run = run;
    insert(world, event);
    return event;
}

static void hear_of_loss(struct event *event)
{
    struct site *site = event->to, *gone = event->from;
    if (!site->alive || site->told[gone->index])
        return;
    site->told[gone->index] = true;
    site_lost(site, gone);
}

void world_lose(struct site *site, struct site *gone, uint64_t ms)
{
    struct event *event = later(site->world, ms, hear_of_loss);
    event->to = site;
    event->from = gone;
}

bool is_cut(const struct site *site)
{
    return site->cut_until > site->world->now;
}

static void arrive(struct event *event)
{
    struct site *to = event->to, *from = event->from;
    if (to->engine == NULL && !to->step->over) { /* it is not there yet; what is sent waits */
        struct event *again = later(to->world, YOUNG_NAP_MS, arrive);
        again->to = to;
        again->from = from;
        again->data = event->data;
        again->len = event->len;
        event->data = NULL;
    } else if (!to->alive)
        world_lose(from, to, dice(to->world, 500)); /* nobody takes what is sent there */
    else if (!to->told[from->index])
        site_receive(to, from, event->data, event->len);
}

void world_send(struct site *from, struct site *to, void *data, size_t len)
{
    struct world *world = from->world;
    uint64_t *latest = &from->latest[to->index], cut = 0;
    if (!from->alive || from->told[to->index]) {
        free(data);
        return;
    }
    if (is_cut(from) || is_cut(to)) {
        cut = (from->cut_until > to->cut_until ? from->cut_until : to->cut_until) - world->now;
        if (cut > PEER_MS)
            world_lose(from, to, PEER_MS);
    }
    from->met[to->index] = to->met[from->index] = true;
    uint64_t ms = cut + 1 + dice(world, world->delay);
    if (world->now + ms < *latest)
        ms = *latest - world->now;
    *latest = world->now + ms;
    struct event *event = later(world, ms, arrive);
    event->from = from;
    event->to = to;
    event->data = data;
    event->len = len;
}

/* Busy: no server's timers fire without end. */
static bool is_busy(struct world *world, uint64_t *at, uint32_t *ticks)
{
    *ticks = *at == world->now ? *ticks + 1 : 0;
    *at = world->now;
    if (*ticks < TICKS_MAX)
        return false;
    world_fault(world, "busy", "timers fire without end at %llu ms",
                (unsigned long long)world->now);
    return true;
}

static struct site *first_due(struct world *world, uint64_t *at)
{
    struct site *first = NULL;
    *at = UINT64_MAX;
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++) {
            struct site *site = &world->steps[i].sites[node];
            int64_t ms = site->alive ? site_next(site) : -1;
            if (ms >= 0 && world->now + (uint64_t)ms < *at) {
                *at = world->now + (uint64_t)ms;
                first = site;
            }
        }
    return first;
}

void world_run(struct world *world, uint64_t ms)
{
    uint64_t end = world->now + ms, due, busy = 0;
    uint32_t ticks = 0;
    while (!is_busy(world, &busy, &ticks)) {
        struct site *site = first_due(world, &due);
        struct event *event = TAILQ_FIRST(&world->events);
        uint64_t at = event != NULL && event->at < due ? event->at : due;
        if (at > end)
            break;
        world->now = at;
        if (at == due) {
            site_tick(site);
            continue;
        }
        TAILQ_REMOVE(&world->events, event, link);
        event->run(event);
        free(event->data);
        free(event);
    }
    world->now = end;
}

void world_each(struct world *world, void (*visit)(struct site *site))
{
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++)
            if (world->steps[i].sites[node].alive)
                visit(&world->steps[i].sites[node]);
}

struct world *world_new(uint64_t seed, bool verbose)
{
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL)
        abort();
    world->seed = seed;
    world->verbose = verbose;
    world->now = 1; /* a timer that is due at 0 does not run */
    world->random.state = seed * 2 + 1;
    TAILQ_INIT(&world->events);
    TAILQ_INIT(&world->items);
    TAILQ_INIT(&world->requests);
    TAILQ_INIT(&world->meetings);
    return world;
}

static void close_site(struct site *site)
{
    engine_close(site->engine);
    holder_close(site->holder);
    asks_close(site->asks);
}

void world_end(struct world *world)
{
    struct event *event;
    world->ending = true;
    world_each(world, close_site);
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++)
            site_free(&world->steps[i].sites[node]);
    while ((event = TAILQ_FIRST(&world->events)) != NULL) {
        TAILQ_REMOVE(&world->events, event, link);
        free(event->data);
        free(event);
    }
}
