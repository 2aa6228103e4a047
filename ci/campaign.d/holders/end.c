/* SPDX-License-Identifier: BSD-3-Clause */
/* One seed, and what has to hold when all has settled. */
#include "ci/campaign.d/holders/holders.h"

#include "common/util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKERS_MAX = 8, ANSWERS_MS = PATIENCE_MS + 10000 };

/* Holders: of several that came about, one is left. */
static void check_holders(struct world *world)
{
    const struct site *first = NULL;
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++) {
            const struct site *site = &world->steps[i].sites[node];
            if (!site->alive || strcmp(holder_view(site->holder).state, "holds") != 0)
                continue;
            if (first != NULL)
                world_fault(world, "holders", "both %s and %s hold", site_name(first),
                            site_name(site));
            first = site;
        }
}

/* Hangs: every request of a process that lives is answered. */
static void check_requests(struct world *world)
{
    const struct request *r;
    TAILQ_FOREACH (r, &world->requests, link)
        if (!r->answered && r->site->alive)
            world_fault(world, "hang", "%s waits for %s since %llu", site_name(r->site),
                        r->item->key, (unsigned long long)r->made_at);
}

static void look_up_all(struct site *site)
{
    struct item *item;
    if (dice(site->world, SITES) < LOOKERS_MAX || site->node == 0)
        TAILQ_FOREACH (item, &site->world->items, link)
            publish_lookup(site, item, false, true);
}

void holders_end(struct world *world)
{
    check_holders(world);
    check_requests(world);
    world_each(world, look_up_all);
    world_run(world, ANSWERS_MS);
    check_requests(world);
    meet_end(world);
}

static void sink(void *arg, enum log_level level, const char *text)
{
    world_trace(arg, "<%d> %s", (int)level, text);
}

bool holders_seed(uint64_t seed, bool verbose)
{
    struct world *world = world_new(seed, verbose);
    log_open(sink, world, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, NULL);
    holders_plan(world);
    world_run(world, PLAY_MS);
    world_run(world, SETTLE_MS);
    holders_end(world);
    world_end(world);
    publish_free(world);
    meet_free(world);
    log_open(NULL, NULL, LOG_LEVEL_WARNING, NULL);
    bool good = world->fault[0] == '\0';
    if (!good)
        fprintf(stderr,
                "seed %llu: %s\n    again: campaign --holders --seeds 1 --first %llu --verbose\n",
                (unsigned long long)seed, world->fault, (unsigned long long)seed);
    free(world);
    return good;
}
