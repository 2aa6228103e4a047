/* SPDX-License-Identifier: BSD-3-Clause */
/* The resource manager, as plugins/slurm/scout.c sees it: the oldest step that has a server which
 * can be reached is the holder's. While the resource manager does not answer, the steps count that
 * it has told of before. */
#include "ci/campaign.d/holders/holders.h"

enum { ANSWER_MS = 30, GIVE_UP_MS = 200, WRONG_PERCENT = 40 };

struct site *rm_first(struct step *step)
{
    for (uint32_t node = 0; node < step->nsites; node++)
        if (step->sites[node].alive)
            return &step->sites[node];
    return NULL;
}

static bool is_away(const struct world *world)
{
    return world->away > world->now;
}

/* What the asker's step knows of the others from now on. @return false: nothing */
static bool list(struct site *site)
{
    struct world *world = site->world;
    struct step *own = site->step;
    bool any = false;
    for (uint32_t i = 0; i < world->nsteps; i++) {
        if (!is_away(world))
            own->seen[i] = world->steps[i].listed && !world->steps[i].over;
        any = any || own->seen[i];
    }
    return any;
}

static struct site *reach(const struct site *site, struct step *step)
{
    struct site *first = rm_first(step);
    return first != NULL && !is_cut(first) && !is_cut(site) ? first : NULL;
}

static void found(struct event *event)
{
    struct site *site = event->to, *home = site;
    struct world *world = site->world;
    bool wrong = world->weather.wrong && world->now < PLAY_MS && likely(world, WRONG_PERCENT);
    if (!site->alive)
        return;
    if (!list(site)) {
        holder_found(site->holder, HOLDER_NONE, "the resource manager does not answer");
        return;
    }
    for (struct step *step = world->steps; step < site->step && home == site; step++) {
        struct site *first = site->step->seen[step - world->steps] ? reach(site, step) : NULL;
        if (first != NULL && !(wrong && likely(world, 50)))
            home = first;
    }
    world_trace(world, "%s: the holder is said to be %s", site_name(site), site_name(home));
    holder_found(site->holder, site_handle(site, home), NULL);
}

void rm_find(void *arg)
{
    struct site *site = arg;
    struct world *world = site->world;
    later(world, is_away(world) ? GIVE_UP_MS : 1 + dice(world, ANSWER_MS), found)->to = site;
}

static void others(struct event *event)
{
    struct site *site = event->to;
    struct world *world = site->world;
    if (!site->alive)
        return;
    list(site);
    for (uint32_t i = 0; i < world->nsteps && site->alive; i++) {
        struct step *step = &world->steps[i];
        struct site *first = step != site->step && site->step->seen[i] ? reach(site, step) : NULL;
        if (first != NULL)
            holder_other(site->holder, site_handle(site, first));
    }
    holder_other(site->holder, HOLDER_NONE);
}

void rm_others(void *arg)
{
    struct site *site = arg;
    struct world *world = site->world;
    later(world, is_away(world) ? GIVE_UP_MS : 1 + dice(world, ANSWER_MS), others)->to = site;
}
