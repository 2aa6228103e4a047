/* SPDX-License-Identifier: BSD-3-Clause */
/* One server: its engine, its asks and its end of the holder, wired as common/server/ does it. */
#include "ci/campaign.d/holders/holders.h"

#include "common/util/clock.h"
#include "common/util/shared_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY = 7 << 16, ARITY = 2, STALL_S = 0, HAND_OVER_MS = 20 };

const char *site_name(const struct site *site)
{
    static char names[4][24];
    static unsigned turn;
    char *name = names[turn++ % 4];
    snprintf(name, sizeof names[0], "%s/%u", site->step->nspace, site->node);
    return name;
}

/* A server calls those of its own step by their numbers, and others by what is theirs. */
uint32_t site_handle(const struct site *from, const struct site *of)
{
    return from->step == of->step ? of->node : SITES_MAX + of->index;
}

struct site *site_of(struct site *from, uint32_t handle)
{
    struct world *world = from->world;
    if (handle < SITES_MAX)
        return &from->step->sites[handle];
    uint32_t index = handle - SITES_MAX;
    return &world->steps[index / SITES_MAX].sites[index % SITES_MAX];
}

static struct step *step_of(struct world *world, const char *nspace)
{
    for (uint32_t i = 0; i < world->nsteps; i++)
        if (strcmp(world->steps[i].nspace, nspace) == 0)
            return &world->steps[i];
    return NULL;
}

/* ---- surroundings ---- */

static int64_t clock_of(void *arg)
{
    const struct site *site = arg;
    return (int64_t)site->world->now;
}

static bool is_lost(void *arg, uint32_t node)
{
    const struct site *site = arg;
    return engine_is_lost(site->engine, node);
}

static void send_shared(void *arg, uint32_t node, struct wire_out *frame, struct shared_bytes *body)
{
    struct site *site = arg;
    size_t len;
    if (body != NULL)
        wire_put_raw(frame, body->data, body->len);
    if (frame->failed)
        abort();
    void *data = wire_out_take(frame, &len);
    world_send(site, site_of(site, node), data, len);
}

static void send_frame(void *arg, uint32_t node, struct wire_out *frame)
{
    send_shared(arg, node, frame, NULL);
}

static int node_of(void *arg, const char *nspace, uint32_t rank, uint32_t *node)
{
    struct site *site = arg;
    const struct step *step = step_of(site->world, nspace);
    if (step == NULL || rank >= step->nsites)
        return -1;
    *node = site_handle(site, &step->sites[rank]);
    return 0;
}

/* The same order everywhere: by step. */
static int servers(void *arg, const struct signature *sig, struct places *places)
{
    struct site *site = arg;
    struct world *world = site->world;
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t rank = 0; rank < world->steps[i].nsites; rank++)
            if (procset_has(&sig->members, world->steps[i].nspace, rank) &&
                places_add(places, site_handle(site, &world->steps[i].sites[rank]), 1) != 0)
                return -1;
    return 0;
}

static int32_t local_status(void *arg, const struct signature *sig)
{
    (void)arg, (void)sig;
    return 0; /* a process ends with its server */
}

static void local_gone(void *arg, const struct signature *sig, struct procset *gone)
{
    (void)arg, (void)sig, (void)gone;
}

static const char *name_of(void *arg, uint32_t node)
{
    return site_name(site_of(arg, node));
}

static void ranks(void *arg, const struct signature *sig, const uint32_t *nodes, uint32_t n,
                  bool some, char *buf, size_t cap)
{
    size_t len = 0;
    (void)sig, (void)some;
    for (uint32_t i = 0; i < n && len < cap; i++)
        len += (size_t)snprintf(buf + len, cap - len, "%s%s", i > 0 ? ", " : "",
                                name_of(arg, nodes[i]));
}

struct homing {
    struct site *site;
    uint64_t call;
};

static void on_home(void *arg, uint32_t node, const char *why)
{
    struct homing *h = arg;
    world_trace(h->site->world, "%s: home is %s", site_name(h->site),
                node != HOLDER_NONE ? site_name(site_of(h->site, node)) : why);
    engine_home(h->site->engine, h->call, node);
    free(h);
}

static void home(void *arg, const char *id, uint64_t call)
{
    struct site *site = arg;
    struct homing *h = malloc(sizeof *h);
    (void)id; /* one home for all */
    if (h == NULL)
        abort();
    *h = (struct homing){site, call};
    holder_where(site->holder, on_home, h);
}

static void ask(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg)
{
    struct site *site = arg;
    asks_send(site->asks, node, ASK_DATA, body, len, 0, done, done_arg);
}

/* The agreed view of the step: servers hear of its changes at different times, in one order. */
static uint32_t head(void *arg)
{
    const struct site *site = arg;
    uint32_t node = 0;
    while (node < site->node && site->told[site->step->sites[node].index])
        node++;
    return node;
}

static uint32_t heir(void *arg)
{
    const struct site *site = arg;
    for (uint32_t node = site->node + 1; node < site->step->nsites; node++)
        if (!site->told[site->step->sites[node].index])
            return node;
    return site->node;
}

static void reply(void *arg, uint32_t node, uint64_t id, int32_t status, const void *data,
                  size_t len)
{
    struct site *site = arg;
    asks_reply(site->asks, node, id, status, data, len);
}

static void serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len)
{
    static const char *const ops[HOLDER_OPS] = {"?",       "PUBLISH", "LOOKUP", "UNPUBLISH",
                                                "ENDED",   "KEEP",    "WHERE",  "JOIN",
                                                "COLLECT", "PING",    "READ",   "HEIR"};
    struct site *site = arg;
    const unsigned char *op = body;
    world_trace(site->world, "%s -> %s: %s", site_name(site_of(site, from)), site_name(site),
                len > 0 && *op < HOLDER_OPS ? ops[*op] : "?");
    holder_serve(site->holder, from, id, body, len);
}

static const char *nspace_at(void *arg, uint32_t node)
{
    return site_of(arg, node)->step->nspace;
}

static void acquaint(void *arg, uint32_t node, const struct procset *set)
{
    (void)arg, (void)node, (void)set; /* all know where all are */
}

static void settle(void *arg, const struct procset *set, void (*done)(void *arg), void *done_arg)
{
    (void)arg, (void)set;
    done(done_arg);
}

/* ---- its life ---- */

static void open_engine(struct site *site)
{
    site->timers = (struct timers){.now = clock_of, .arg = site};
    const struct engine_env env = {
        .arg = site,
        .self = site->node,
        .nnodes = site->step->nsites,
        .arity = ARITY,
        .library = LIBRARY,
        .ids = ((uint64_t)site->index / SITES_MAX << IDS_SHIFT) + site->node,
        .id_step = site->step->nsites,
        .stall = STALL_S,
        .codes = {LOOPBACK_TIMEOUT, LOOPBACK_LOST, LOOPBACK_INVALID, LOOPBACK_LIBRARY,
                  LOOPBACK_CLOSING, LOOPBACK_COUNT},
        .timers = &site->timers,
        .servers = servers,
        .node_of = node_of,
        .local_status = local_status,
        .local_gone = local_gone,
        .name = name_of,
        .home = home,
        .send = send_shared,
        .ranks = ranks,
    };
    const struct ask_env asks = {
        .arg = site,
        .timeout = LOOPBACK_TIMEOUT,
        .lost = LOOPBACK_LOST,
        .unsupported = LOOPBACK_UNSUPPORTED,
        .closing = LOOPBACK_CLOSING,
        .timers = &site->timers,
        .send = send_frame,
        .serve = {[ASK_DATA] = serve},
    };
    site->engine = engine_new(&env);
    site->asks = asks_new(&asks);
    if (site->engine == NULL || site->asks == NULL)
        abort();
}

void step_plan(struct world *world, uint32_t number, uint32_t nsites)
{
    struct step *step = &world->steps[number];
    snprintf(step->nspace, sizeof step->nspace, "job.%u", number);
    step->nsites = nsites;
    for (uint32_t node = 0; node < SITES_MAX; node++) {
        struct site *site = &step->sites[node];
        site->world = world;
        site->step = step;
        site->node = node;
        site->index = number * SITES_MAX + node;
    }
}

void site_open(struct step *step, uint32_t node)
{
    struct site *site = &step->sites[node];
    const struct holder_env env = {
        .arg = site,
        .self = node,
        .nnodes = step->nsites,
        .codes = {.success = CODE_SUCCESS,
                  .duplicate = CODE_DUPLICATE,
                  .full = CODE_FULL,
                  .not_found = CODE_NOT_FOUND,
                  .partial = CODE_PARTIAL,
                  .timeout = CODE_TIMEOUT,
                  .unreach = CODE_UNREACH,
                  .bad = CODE_BAD,
                  .lost = CODE_LOST},
        .timers = &site->timers,
        .is_lost = is_lost,
        .find = rm_find,
        .head = head,
        .heir = heir,
        .others = rm_others,
        .ask = ask,
        .reply = reply,
        .nspace = nspace_at,
        .server = node_of,
        .node_of = node_of,
        .acquaint = acquaint,
        .settle = settle,
    };
    open_engine(site);
    site->alive = true;
    if (step->since == 0)
        step->since = site->world->now;
    site->holder = holder_new(&env);
    if (site->holder == NULL)
        abort();
    for (uint32_t i = 0; i < step->nsites; i++) /* gone before this one was there */
        if (step->sites[i].engine != NULL && !step->sites[i].alive)
            world_lose(site, &step->sites[i], 0);
}

/* Those of the own step are told by the resource manager; of the others, those that have spoken
 * with it, by itself. */
static void tell_others(struct site *site, bool in_order)
{
    struct world *world = site->world;
    for (uint32_t i = 0; i < world->nsteps; i++)
        for (uint32_t node = 0; node < world->steps[i].nsites; node++) {
            struct site *other = &world->steps[i].sites[node];
            bool own = other->step == site->step;
            uint64_t after = site->latest[other->index];
            after = after > world->now && in_order ? after - world->now : 0;
            if (other == site || !other->alive)
                continue;
            if (own)
                world_lose(other, site, in_order ? after + dice(world, 300) : dice(world, 3000));
            else if (in_order && site->met[other->index])
                world_lose(other, site, after + dice(world, 50));
        }
}

static void shut(struct site *site, bool in_order)
{
    engine_close(site->engine);
    holder_close(site->holder);
    asks_close(site->asks);
    site->alive = false;
    tell_others(site, in_order);
}

/* Once another server has what only this one has. */
static void go(struct event *event)
{
    struct site *site = event->to;
    if (!site->alive)
        return;
    if (holder_hands_over(site->holder))
        later(site->world, HAND_OVER_MS, go)->to = site;
    else
        shut(site, true);
}

void site_end(struct site *site, bool in_order)
{
    if (!site->alive || (in_order && site->leaves))
        return;
    world_trace(site->world, "%s %s; its holder's end %s", site_name(site),
                in_order ? "leaves" : "is killed", holder_view(site->holder).state);
    site->leaves = true;
    if (in_order) {
        holder_leave(site->holder);
        later(site->world, 0, go)->to = site;
    } else {
        site->alive = false; /* and says nothing more */
        shut(site, false);
    }
}

void site_free(struct site *site)
{
    if (site->engine == NULL)
        return;
    asks_free(site->asks);
    holder_free(site->holder);
    engine_free(site->engine);
}

void site_receive(struct site *site, struct site *from, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    enum frame_type type = bytes[0];
    uint32_t handle = site_handle(site, from);
    if (type == FRAME_LEAD || type == FRAME_OUTCOME)
        world_trace(site->world, "%s -> %s: %s", site_name(from), site_name(site),
                    type == FRAME_LEAD ? "lead" : "outcome");
    if (type == FRAME_ASK || type == FRAME_ANSWER)
        asks_frame(site->asks, handle, type, bytes + 1, len - 1);
    else
        engine_take(site->engine, handle, type, bytes + 1, len - 1);
}

void site_lost(struct site *site, struct site *gone)
{
    uint32_t handle = site_handle(site, gone);
    engine_lost(site->engine, handle);
    asks_lost(site->asks, handle);
    holder_lost(site->holder, handle);
}

int64_t site_next(const struct site *site)
{
    return timers_wait(&site->timers);
}

void site_tick(struct site *site)
{
    timers_run_one(&site->timers);
}
