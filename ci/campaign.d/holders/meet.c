/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that form groups, connect and fence over steps. */
#include "ci/campaign.d/holders/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLERS_MAX = 6,
    SPREAD_MS = 3000, /* calls of one operation are made within it */
    TIMEOUT_MIN_S = 5,
    TIMEOUTS_S = 25,
    HOPS = 8,        /* messages one after another that an operation may take */
    GRACE_MS = 5100, /* the engine's grace, and a little: no member is added here, so graces do not
                        chain */
};

static bool is_fine(const struct world *world)
{
    const struct holders_weather *w = &world->weather;
    return !w->ends && !w->kills && !w->cuts;
}

static const char *meeting_name(const struct meeting *m)
{
    static char names[2][48];
    static unsigned turn;
    char *name = names[turn++ % 2];
    snprintf(name, sizeof names[0], "%s%s \"%s\"", m->bootstrap ? "bootstrap " : "",
             coll_traits(m->kind)->name, m->id);
    return name;
}

/* Participants: a success has the contributions of all, each once and byte by byte. */
static void check_entries(const struct caller *caller, const struct engine_result *result)
{
    const struct meeting *m = caller->meeting;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < result->nentries; i++) {
        uint32_t head[2] = {UINT32_MAX, UINT32_MAX};
        if (result->entries[i].len == sizeof head)
            memcpy(head, result->entries[i].data, sizeof head);
        if (head[0] != m->number || head[1] >= m->ncallers || (seen & 1u << head[1]) != 0)
            world_fault(m->world, "participants", "%s: %s has a contribution of something else",
                        meeting_name(m), site_name(caller->site));
        else
            seen |= 1u << head[1];
    }
    if (seen != (1u << m->ncallers) - 1)
        world_fault(m->world, "participants", "%s succeeded for %s without everybody",
                    meeting_name(m), site_name(caller->site));
}

/* Context ids: one for each construct, the same for all of its callers, and never another one's. */
static void check_context_id(const struct caller *caller)
{
    const struct meeting *m = caller->meeting, *other;
    struct world *world = m->world;
    uint64_t id = caller->context_id;
    if ((m->kind == COLL_CONSTRUCT) != (id != 0))
        world_fault(world, "context id", "%s gave %s %llu", meeting_name(m),
                    site_name(caller->site), (unsigned long long)id);
    TAILQ_FOREACH (other, &world->meetings, link)
        for (uint32_t i = 0; i < other->ncallers; i++) {
            const struct caller *c = &other->callers[i];
            if (c == caller || !c->answered || c->status != 0 || id == 0)
                continue;
            if ((other == m) != (c->context_id == id))
                world_fault(world, "context id", "%s and %s got %llu and %llu", meeting_name(m),
                            meeting_name(other), (unsigned long long)id,
                            (unsigned long long)c->context_id);
        }
}

static void done(struct engine_call *call, const struct engine_result *result)
{
    struct caller *caller = (struct caller *)call;
    struct world *world = caller->meeting->world;
    if (caller->answered)
        world_fault(world, "answers", "%s was answered again", site_name(caller->site));
    caller->answered = true;
    caller->status = result->status;
    caller->context_id = result->context_id;
    if (caller->site->leaves || world->ending)
        return;
    world_trace(world, "%s: %s: status %d, context id %llu", site_name(caller->site),
                meeting_name(caller->meeting), result->status,
                (unsigned long long)result->context_id);
    if (call->timeout > 0 && world->now > caller->made_at + call->timeout * 1000ull + GRACE_MS)
        world_fault(world, "deadline", "%s was answered after %llu ms", site_name(caller->site),
                    (unsigned long long)(world->now - caller->made_at));
    if (result->status != 0)
        return;
    check_entries(caller, result);
    check_context_id(caller);
}

static void call(struct event *event)
{
    struct caller *caller = event->arg;
    struct meeting *m = caller->meeting;
    struct engine *engine = caller->site->engine;
    if (caller->site->leaves)
        return;
    caller->made = true;
    world_trace(m->world, "%s calls: %s of %u", site_name(caller->site), meeting_name(m),
                m->ncallers);
    caller->made_at = m->world->now;
    if (m->bootstrap && caller->call.leaders == 0)
        engine_join(engine, &caller->call);
    else if (m->bootstrap)
        engine_lead(engine, &caller->call);
    else
        engine_call(engine, &caller->call);
}

static void add_caller(struct meeting *m, struct site *site)
{
    struct caller *caller = &m->callers[m->ncallers];
    uint32_t head[2] = {m->number, m->ncallers++};
    caller->meeting = m;
    caller->site = site;
    memcpy(caller->data, head, sizeof head);
    procset_add(&caller->self, site->step->nspace, site->node, site->node);
    procset_canonical(&caller->self);
    procset_unite(&m->members, &caller->self);
}

static void draw_callers(struct world *world, struct meeting *m)
{
    uint32_t percent = 10 + dice(world, 60);
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++) {
            struct site *site = &world->steps[i].sites[node];
            if (site->alive && !site->leaves && m->ncallers < CALLERS_MAX && likely(world, percent))
                add_caller(m, site);
        }
}

/* Of some bootstraps the first half lead and add the others. @return how many lead */
static uint32_t draw_leaders(struct meeting *m)
{
    uint32_t leaders = m->bootstrap && m->number % 2 == 1 ? (m->ncallers + 1) / 2 : m->ncallers;
    struct procset added = {0};
    struct wire_out out = {0};
    for (uint32_t i = leaders; i < m->ncallers; i++)
        procset_unite(&added, &m->callers[i].self);
    if (added.nparts > 0)
        procset_write(&added, &out);
    m->added = wire_out_take(&out, &m->addedlen);
    procset_free(&added);
    return leaders;
}

static void begin(struct meeting *m)
{
    struct world *world = m->world;
    struct wire_out out = {0};
    uint32_t timeout = is_fine(world) && !world->weather.away && likely(world, 50)
                           ? 0
                           : TIMEOUT_MIN_S + dice(world, TIMEOUTS_S) + HOPS * world->delay / 1000;
    signature_write(&out, m->kind, m->id, &m->members);
    m->sig = wire_out_take(&out, &m->siglen);
    uint32_t leaders = draw_leaders(m);
    for (uint32_t i = 0; i < m->ncallers; i++) {
        struct caller *caller = &m->callers[i];
        caller->call = (struct engine_call){
            .sig = m->bootstrap ? NULL : m->sig,
            .siglen = m->bootstrap ? 0 : m->siglen,
            .flags = m->kind == COLL_CONSTRUCT ? ENGINE_WANT_CONTEXT_ID : 0,
            .data = caller->data,
            .len = sizeof caller->data,
            .timeout = timeout,
            .id = m->id,
            .caller = &caller->self,
            .leaders = i < leaders ? leaders : 0,
            .added = i < leaders ? m->added : NULL,
            .addedlen = i < leaders ? m->addedlen : 0,
            .done = done,
        };
        later(world, dice(world, SPREAD_MS), call)->arg = caller;
    }
}

void meet_some(struct event *event)
{
    static const enum coll_kind kinds[] = {COLL_CONSTRUCT, COLL_CONSTRUCT, COLL_CONNECT,
                                           COLL_FENCE};
    struct world *world = event->arg;
    struct meeting *m = calloc(1, sizeof *m);
    if (m == NULL || (m->callers = calloc(CALLERS_MAX, sizeof *m->callers)) == NULL)
        abort();
    m->world = world;
    m->number = world->nmeetings++;
    m->kind = kinds[dice(world, 4)];
    m->bootstrap = m->kind == COLL_CONSTRUCT && likely(world, 60);
    snprintf(m->id, sizeof m->id, "meet.%u", m->number);
    TAILQ_INSERT_TAIL(&world->meetings, m, link);
    draw_callers(world, m);
    if (m->ncallers > 0)
        begin(m);
}

/* Hangs: every call of a process that lives is answered. On a fine day it succeeds, unless time is
 * short while the resource manager does not answer, or leaders have met at two holders. */
void meet_end(struct world *world)
{
    const struct meeting *m;
    bool fine = is_fine(world) && !world->weather.away;
    TAILQ_FOREACH (m, &world->meetings, link)
        for (uint32_t i = 0; i < m->ncallers; i++) {
            const struct caller *c = &m->callers[i];
            if (!c->made || !c->site->alive)
                continue;
            if (!c->answered)
                world_fault(world, "hang", "%s of %s was never answered", meeting_name(m),
                            site_name(c->site));
            else if (fine && c->status != 0 && !(world->weather.wrong && c->call.timeout > 0))
                world_fault(world, "success", "%s failed for %s with %d for no reason",
                            meeting_name(m), site_name(c->site), c->status);
        }
}

void meet_free(struct world *world)
{
    struct meeting *m;
    while ((m = TAILQ_FIRST(&world->meetings)) != NULL) {
        TAILQ_REMOVE(&world->meetings, m, link);
        for (uint32_t i = 0; i < m->ncallers; i++)
            procset_free(&m->callers[i].self);
        procset_free(&m->members);
        free(m->callers);
        free(m->added);
        free(m->sig);
        free(m);
    }
}
