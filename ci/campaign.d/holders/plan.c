/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the steps, what befalls them, and when processes do something. */
#include "ci/campaign.d/holders/holders.h"

enum {
    STARTS_MS = 20000, /* steps start within it */
    YOUNG_MS = 1500,   /* a step's servers may come so long after it is listed */
    LONG_MS = 20000,   /* of cuts, and of a resource manager that is away */
    ACTS_MAX = 8,      /* of a process */
    MEETINGS_MAX = 8,
};

static void start_site(struct event *event)
{
    struct site *site = event->to;
    struct world *world = site->world;
    if (site->step->over)
        return;
    site_open(site->step, site->node);
    world_trace(world, "%s is there", site_name(site));
    for (uint32_t n = 1 + dice(world, ACTS_MAX); n > 0 && world->now < PLAY_MS; n--)
        later(world, dice(world, (uint32_t)(PLAY_MS - world->now)), publish_some)->to = site;
}

static void start_step(struct event *event)
{
    struct step *step = event->arg;
    struct world *world = event->to->world;
    if (world->away > world->now) { /* it starts nothing, either */
        event = later(world, world->away - world->now, start_step);
        event->arg = step;
        event->to = &step->sites[0];
        return;
    }
    step->listed = true;
    uint64_t young = dice(world, YOUNG_MS);
    for (uint32_t node = 0; node < step->nsites; node++)
        later(world, young + dice(world, 300), start_site)->to = &step->sites[node];
}

static void end_site(struct event *event)
{
    site_end(event->to, event->arg != NULL);
}

/* @param in_order or it is killed */
static void end_step(struct world *world, struct step *step, bool in_order)
{
    if (!step->listed || step->over)
        return;
    world_trace(world, "%s %s", step->nspace, in_order ? "ends" : "is killed");
    step->over = true;
    step->until = world->now;
    for (uint32_t node = 0; node < step->nsites; node++) {
        struct event *event = later(world, dice(world, 200), end_site);
        event->to = &step->sites[node];
        event->arg = in_order ? step : NULL;
    }
}

/* The last step is left: there is somebody for whom it counts. */
static struct step *any_step(struct world *world)
{
    return &world->steps[dice(world, world->nsteps - 1)];
}

static void some_end(struct event *event)
{
    struct world *world = event->arg;
    end_step(world, any_step(world), true);
}

static void some_kill(struct event *event)
{
    struct world *world = event->arg;
    struct step *step = any_step(world);
    struct site *site = &step->sites[dice(world, step->nsites)];
    if (step->nsites == 1 || likely(world, 60))
        end_step(world, step, false);
    else
        site_end(site, false);
}

/* The resource manager ends the step of a node that does not come back. A step that has not started
 * yet gets another node. */
static void end_cut(struct event *event)
{
    struct site *site = event->to;
    if (site->step->listed)
        end_step(site->world, site->step, false);
    else
        site->cut_until = 0;
}

static void some_cut(struct event *event)
{
    struct world *world = event->arg;
    struct step *step = any_step(world);
    struct site *site = &step->sites[dice(world, step->nsites)];
    uint32_t ms = dice(world, LONG_MS);
    world_trace(world, "%s is cut off for %u ms", site_name(site), ms);
    site->cut_until = world->now + ms;
    if (ms > PEER_MS)
        later(world, PEER_MS + dice(world, 1000), end_cut)->to = site;
}

static void some_away(struct event *event)
{
    struct world *world = event->arg;
    world->away = world->now + dice(world, LONG_MS);
    world_trace(world, "the resource manager is away until %llu", (unsigned long long)world->away);
}

static void some(struct world *world, bool may, uint32_t most, void (*mishap)(struct event *event))
{
    for (uint32_t n = may ? 1 + dice(world, most) : 0; n > 0; n--)
        later(world, dice(world, PLAY_MS), mishap)->arg = world;
}

static void draw_weather(struct world *world)
{
    struct holders_weather *w = &world->weather;
    if (likely(world, 15))
        return;
    w->ends = likely(world, 50);
    w->kills = likely(world, 40);
    w->cuts = likely(world, 30);
    w->wrong = likely(world, 30);
    w->away = likely(world, 30);
    world_trace(world, "weather:%s%s%s%s%s", w->ends ? " ends" : "", w->kills ? " kills" : "",
                w->cuts ? " cuts" : "", w->wrong ? " wrong" : "", w->away ? " away" : "");
}

static void plan_step(struct world *world, uint32_t number)
{
    struct step *step = &world->steps[number];
    step_plan(world, number, 1 + dice(world, SITES_MAX));
    struct event *event = later(world, number == 0 ? 0 : dice(world, STARTS_MS), start_step);
    event->arg = step;
    event->to = &step->sites[0];
}

void holders_plan(struct world *world)
{
    draw_weather(world);
    world->delay = 5 + dice(world, likely(world, 30) ? 1000 : 60);
    world->nsteps = 2 + dice(world, STEPS_MAX - 1);
    for (uint32_t i = 0; i < world->nsteps; i++)
        plan_step(world, i);
    for (uint32_t n = 1 + dice(world, MEETINGS_MAX); n > 0; n--)
        later(world, dice(world, PLAY_MS), meet_some)->arg = world;
    some(world, world->weather.ends, world->nsteps, some_end);
    some(world, world->weather.kills, world->nsteps, some_kill);
    some(world, world->weather.cuts, 3, some_cut);
    some(world, world->weather.away, 2, some_away);
}
