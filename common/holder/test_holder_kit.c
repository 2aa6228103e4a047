/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes of the steps ask, and how servers end. */
#include "common/holder/test_holder_kit.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world *world;
uint32_t requests, answered;

struct site *site(uint32_t step, uint32_t node)
{
    return &world->steps[step].sites[node];
}

const char *state_of(const struct site *s)
{
    return holder_view(s->holder).state;
}

uint32_t held_by(const struct site *s)
{
    return holder_view(s->holder).held.entries;
}

void start(uint32_t step)
{
    world->steps[step].listed = true;
    for (uint32_t node = 0; node < NODES; node++)
        site_open(&world->steps[step], node);
}

void open_world(uint64_t seed, uint32_t nsteps)
{
    world = world_new(seed, false);
    world->delay = DELAY_MS;
    world->nsteps = STEPS;
    requests = answered = 0;
    for (uint32_t step = 0; step < STEPS; step++)
        step_plan(world, step, NODES);
    for (uint32_t step = 0; step < nsteps; step++)
        start(step);
}

void close_world(void)
{
    world_end(world);
    assert_string_equal(world->fault, "");
    free(world);
}

/* ---- what processes do ---- */

static void done(void *arg, int32_t status, const void *data, size_t len)
{
    int32_t *to = arg;
    (void)data, (void)len;
    answered++;
    if (to != NULL)
        *to = status;
}

void request(struct site *s, struct wire_out *body, int32_t *status)
{
    requests++;
    holder_request(s->holder, body->data, body->len, PATIENCE_MS, done, status);
    wire_out_free(body);
}

struct store_who process_of(const struct site *s)
{
    struct store_who who = {.rank = s->node};
    snprintf(who.nspace, sizeof who.nspace, "%s", s->step->nspace);
    return who;
}

char *key_of(const struct site *s, char *buf, size_t cap)
{
    snprintf(buf, cap, "key.%u", s->index);
    return buf;
}

void put_unpublish(struct wire_out *out, const struct site *s)
{
    const struct store_who who = process_of(s);
    wire_put_u8(out, HOLDER_UNPUBLISH);
    store_put_who(out, &who);
    wire_put_u8(out, STORE_RANGES);
    wire_put_u32(out, 0);
}

void publish(struct site *s, enum store_life life, int32_t *status)
{
    struct store_entry e = {.who = process_of(s), .number = 1, .life = life};
    struct wire_out out = {0};
    char key[32];
    e.key = e.value = key_of(s, key, sizeof key);
    e.len = strlen(key);
    wire_put_u8(&out, HOLDER_PUBLISH);
    wire_put_u32(&out, 1);
    store_put_entry(&out, &e);
    request(s, &out, status);
}

void lookup(struct site *s, const struct site *of, bool wait, int32_t *status)
{
    char key[32], *keys[] = {key_of(of, key, sizeof key)};
    const struct store_lookup l = {.who = process_of(s),
                                   .want = wait,
                                   .left = wait ? PATIENCE_MS : 0,
                                   .nkeys = 1,
                                   .keys = keys};
    struct wire_out out = {0};
    wire_put_u8(&out, HOLDER_LOOKUP);
    store_put_lookup(&out, &l);
    request(s, &out, status);
}

/* ---- ends ---- */

static bool lives(struct site *const s[], uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any = any || s[i]->alive;
    return any;
}

void leave(struct site *s[], uint32_t n)
{
    uint64_t last = world->now + PATIENCE_MS;
    for (uint32_t i = 0; i < n; i++)
        site_end(s[i], true);
    while (lives(s, n)) {
        assert_true(world->now < last);
        world_run(world, 1);
    }
}

void end_step(uint32_t step, bool in_order)
{
    struct site *all[NODES] = {site(step, 0), site(step, 1), site(step, 2)};
    world->steps[step].over = true;
    if (in_order)
        leave(all, NODES);
    for (uint32_t node = 0; node < NODES; node++)
        site_end(all[node], false); /* those that have not left */
}
