/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the holder's end that say what has to happen when: in the world of the campaign of jobs
 * that meet (ci/campaign.d/holders/), with five steps of three servers. What holds whatever
 * happens, the campaign shows with schedules of its own.
 */
#include "ci/campaign.d/holders/holders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 5, NODES = 3, SEEDS = 500, DELAY_MS = 20 };

static struct world *world;
static uint32_t requests, answered;

static struct site *site(uint32_t step, uint32_t node)
{
    return &world->steps[step].sites[node];
}

static const char *state_of(const struct site *s)
{
    return holder_view(s->holder).state;
}

static uint32_t held_by(const struct site *s)
{
    return holder_view(s->holder).held.entries;
}

static void start(uint32_t step)
{
    world->steps[step].listed = true;
    for (uint32_t node = 0; node < NODES; node++)
        site_open(&world->steps[step], node);
}

/** @param nsteps how many of them start at once */
static void open_world(uint64_t seed, uint32_t nsteps)
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

static void close_world(void)
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

static void request(struct site *s, struct wire_out *body, int32_t *status)
{
    requests++;
    holder_request(s->holder, body->data, body->len, PATIENCE_MS, done, status);
    wire_out_free(body);
}

static struct store_who process_of(const struct site *s)
{
    struct store_who who = {.rank = s->node};
    snprintf(who.nspace, sizeof who.nspace, "%s", s->step->nspace);
    return who;
}

/* Each process publishes one key, named after its server. */
static char *key_of(const struct site *s, char *buf, size_t cap)
{
    snprintf(buf, cap, "key.%u", s->index);
    return buf;
}

static void put_publish(struct wire_out *out, const struct site *s, uint64_t number, char *key,
                        enum store_life life)
{
    struct store_entry e = {.who = process_of(s), .number = number, .life = life};
    e.key = e.value = key;
    e.len = strlen(key);
    wire_put_u8(out, HOLDER_PUBLISH);
    wire_put_u32(out, 1);
    store_put_entry(out, &e);
}

/* All that it has published. */
static void put_unpublish(struct wire_out *out, const struct site *s)
{
    const struct store_who who = process_of(s);
    wire_put_u8(out, HOLDER_UNPUBLISH);
    store_put_who(out, &who);
    wire_put_u8(out, STORE_RANGES);
    wire_put_u32(out, 0);
}

static void publish(struct site *s, enum store_life life, int32_t *status)
{
    struct wire_out out = {0};
    char key[32];
    put_publish(&out, s, 1, key_of(s, key, sizeof key), life);
    request(s, &out, status);
}

static void lookup(struct site *s, const struct site *of, bool wait, int32_t *status)
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

/* They begin to leave at once, and each ends when it may. */
static void leave(struct site *s[], uint32_t n)
{
    uint64_t last = world->now + PATIENCE_MS;
    for (uint32_t i = 0; i < n; i++)
        site_end(s[i], true);
    while (lives(s, n)) {
        assert_true(world->now < last);
        world_run(world, 1);
    }
}

static void end_step(uint32_t step, bool in_order)
{
    struct site *all[NODES] = {site(step, 0), site(step, 1), site(step, 2)};
    world->steps[step].over = true;
    if (in_order)
        leave(all, NODES);
    for (uint32_t node = 0; node < NODES; node++)
        site_end(all[node], false); /* those that have not left */
}

/* ---- tests ---- */

/* A waiting lookup and a publisher that does nothing more outlive the holder. */
static void outlives(bool in_order)
{
    int32_t status = 1, waits = 1, found_it = 1;
    open_world(7, 3);
    publish(site(1, 1), STORE_APP, &status);
    world_run(world, 2000);
    assert_int_equal(status, CODE_SUCCESS);
    assert_string_equal(state_of(site(0, 0)), "holds");
    assert_int_equal(held_by(site(0, 0)), 1);
    lookup(site(2, 2), site(2, 0), true, &waits);
    world_run(world, 1000);
    assert_int_equal(waits, 1);
    end_step(0, in_order);
    lookup(site(2, 0), site(1, 1), false, &found_it);
    world_run(world, 5000);
    assert_int_equal(found_it, CODE_SUCCESS);
    assert_int_equal(waits, 1);
    publish(site(2, 0), STORE_APP, &status);
    world_run(world, 5000);
    assert_int_equal(waits, CODE_SUCCESS);
    assert_int_equal(answered, requests);
    close_world();
}

static void test_outlives(void **state)
{
    (void)state;
    outlives(true);
    outlives(false);
}

/* What the holder has and has not yet said to have, when it is killed, the next one has from its
 * beginning: others may have found it. */
static void test_unanswered(void **state)
{
    uint32_t unanswered = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        int32_t status = 1, before = 1;
        open_world(seed, 3);
        publish(site(2, 0), STORE_APP, &before);
        world_run(world, 3000);
        assert_int_equal(before, CODE_SUCCESS);
        publish(site(2, 1), STORE_APP, &status);
        world_run(world, 1 + seed % 40);
        site(0, 0)->cut_until =
            world->now + 60000; /* its answer is slower than the news of its end */
        for (int ms = 0; ms < 50 && held_by(site(0, 0)) < 2; ms++)
            world_run(world, 1);
        bool has = held_by(site(0, 0)) == 2 && status == 1;
        unanswered += has;
        end_step(0, false);
        while (strcmp(state_of(site(1, 0)), "holds") != 0)
            world_run(world, 1);
        assert_true(!has || held_by(site(1, 0)) == 2);
        world_run(world, 5000);
        assert_int_equal(status, CODE_SUCCESS);
        assert_int_equal(held_by(site(1, 0)), 2);
        close_world();
    }
    assert_int_not_equal(unanswered, 0);
}

/* What a step has published ends with it, if it says so, and not before. */
static void test_ends(void **state)
{
    int32_t status = 1;
    struct site *first;
    (void)state;
    open_world(3, 2);
    first = site(1, 0);
    publish(first, STORE_APP, &status);
    world_run(world, 2000);
    assert_int_equal(held_by(site(0, 0)), 1);
    leave(&first, 1); /* others of its step live */
    world_run(world, 20000);
    assert_int_equal(held_by(site(0, 0)), 1);
    end_step(1, true);
    world_run(world, 20000);
    assert_int_equal(held_by(site(0, 0)), 0);
    close_world();
}

/* What steps have published for the session outlives them, though they and the holder end at once:
 * the last one finds all of it. */
static void end_together(uint64_t seed)
{
    struct site *all[SITES];
    int32_t published[STEPS];
    uint32_t n = 0, end = (STEPS - 1) * NODES;
    open_world(seed, STEPS);
    for (uint32_t step = 0; step < STEPS; step++)
        publish(site(step, 0), STORE_SESSION_LIFE, &published[step]);
    world_run(world, 6000 + dice(world, 3000));
    for (uint32_t step = 0; step < STEPS; step++)
        assert_int_equal(published[step], CODE_SUCCESS);
    for (uint32_t i = 0; i < end; i++) {
        all[n++] = site(i / NODES, i % NODES);
        if (i + 1 < end && (n < NODES || dice(world, 3) != 0))
            continue;
        leave(all, n);
        n = 0;
        world_run(world, dice(world, 2000));
    }
    world_run(world, 60000);
    for (uint32_t step = 0; step < STEPS; step++) {
        int32_t status = 1;
        lookup(site(STEPS - 1, NODES - 1), site(step, 0), false, &status);
        world_run(world, 5000);
        if (status != CODE_SUCCESS)
            fail_msg("seed %llu: what step %u has published is lost: %d", (unsigned long long)seed,
                     step, status);
    }
    close_world();
}

static void test_end_together(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        end_together(seed);
}

/* The two oldest steps end at once, and the others have never asked for anything: one of these is
 * the heir all the same. */
static void test_heir_that_never_asked(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct site *all[2 * NODES];
        int32_t published[2], found_it[2] = {1, 1};
        open_world(seed, STEPS);
        for (uint32_t step = 0; step < 2; step++)
            publish(site(step, 0), STORE_SESSION_LIFE, &published[step]);
        world_run(world, 6000 + dice(world, 3000));
        for (uint32_t i = 0; i < 2 * NODES; i++)
            all[i] = site(i / NODES, i % NODES);
        leave(all, 2 * NODES);
        world_run(world, 20000);
        for (uint32_t step = 0; step < 2; step++)
            lookup(site(2, NODES - 1), site(step, 0), false, &found_it[step]);
        world_run(world, 5000);
        for (uint32_t step = 0; step < 2; step++)
            if (found_it[step] != CODE_SUCCESS)
                fail_msg("seed %llu: what step %u has published is lost: %d",
                         (unsigned long long)seed, step, found_it[step]);
        close_world();
    }
}

/* The holder is killed, and a server that does not answer keeps the next one collecting for longer
 * than a server that leaves stays. What the leaver has for the session is not lost: neither where
 * it is that next holder, nor where it has greeted it. @param others whether another step than the
 * leaver's has published */
static void leave_early(uint64_t seed, uint32_t leaver, bool others)
{
    struct site *next, *silent, *all[NODES];
    int32_t published = 1, found_it = 1;
    open_world(seed, STEPS - 1);
    next = site(1, 0);
    silent = site(3, 0);
    publish(site(leaver, 0), STORE_SESSION_LIFE, &published);
    if (others)
        publish(site(3 - leaver, 0), STORE_APP, NULL);
    world_run(world, 6000);
    assert_int_equal(published, CODE_SUCCESS);
    end_step(0, false);
    lookup(site(1, 1), site(2, 0), false, NULL); /* by which its end is noticed */
    while (!next->met[silent->index])
        world_run(world, 1);
    silent->cut_until = world->now + 30000;
    world_run(world, 200);
    assert_string_equal(state_of(next), "collects");
    assert_string_equal(state_of(site(2, 0)), leaver == 2 || others ? "greets" : "rests");
    for (uint32_t node = 0; node < NODES; node++)
        all[node] = site(leaver, node);
    world->steps[leaver].over = true;
    leave(all, NODES);
    world_run(world, 20000);
    lookup(site(3 - leaver, 1), site(leaver, 0), false, &found_it);
    world_run(world, 5000);
    if (found_it != CODE_SUCCESS)
        fail_msg("seed %llu: what step %u has published is lost: %d", (unsigned long long)seed,
                 leaver, found_it);
    close_world();
}

static void test_leaves_while_collecting(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        leave_early(seed, 1, true);
        leave_early(seed, 1, false);
        leave_early(seed, 2, true);
        leave_early(seed, 2, false);
    }
}

/* A question that waits is asked again. Once it is answered it is not done a second time: what was
 * unpublished since stays so. */
static void test_once(void **state)
{
    char another[] = "another";
    int32_t found_it = 1;
    (void)state;
    open_world(5, 2);
    publish(site(1, 0), STORE_APP, NULL);
    world_run(world, 2000);
    for (uint64_t turn = 0; turn < 3; turn++) {
        struct wire_out out = {0};
        if (turn == 1)
            put_unpublish(&out, site(1, 0));
        else
            put_publish(&out, site(1, 0), 2, another, STORE_APP);
        holder_serve(site(0, 0)->holder, site_handle(site(0, 0), site(1, 0)), 1000 + turn % 2,
                     out.data, out.len);
        wire_out_free(&out);
        world_run(world, 100);
        assert_int_equal(held_by(site(0, 0)), turn == 0 ? 2 : 0);
    }
    lookup(site(0, 1), site(1, 0), false, &found_it);
    world_run(world, 1000);
    assert_int_equal(found_it, CODE_NOT_FOUND);
    close_world();
}

/* What a step has unpublished at a second holder is not left at the first one. */
static void test_unpublished(void **state)
{
    struct site *of, *second;
    struct wire_out out = {0};
    int32_t status = 1, found_it = 1;
    (void)state;
    open_world(9, 3);
    of = site(2, 0);
    second = site(1, 0);
    publish(of, STORE_APP, &status);
    world_run(world, 2000);
    assert_int_equal(held_by(site(0, 0)), 1);
    /* Now the second step's server is said to be the holder. */
    holder_found(second->holder, 0, NULL);
    holder_found(of->holder, site_handle(of, second), NULL);
    world_run(world, 1000);
    assert_string_equal(state_of(site(0, 0)), "holds");
    assert_int_equal(held_by(second), 1);
    put_unpublish(&out, of);
    request(of, &out, &status);
    world_run(world, 500);
    assert_int_equal(status, CODE_SUCCESS);
    assert_int_equal(held_by(second), 0);
    world_run(world, 20000); /* the second one has looked for an older one */
    assert_string_equal(state_of(second), "follows");
    lookup(site(0, 1), of, false, &found_it);
    world_run(world, 1000);
    assert_int_equal(found_it, CODE_NOT_FOUND);
    close_world();
}

/* The servers of a step do not agree on who of them is lost, so two of them speak for it. The first
 * one, which believes that it has heard of all, takes nothing away that the other one has told. */
static void test_parted(void **state)
{
    int32_t status = 1, by_first = 1, found_it = 1;
    (void)state;
    open_world(13, 2);
    for (uint32_t node = 1; node < NODES; node++)
        site_lost(site(1, node), site(1, 0));
    publish(site(1, 2), STORE_APP, &status);
    world_run(world, 6000);
    assert_int_equal(status, CODE_SUCCESS);
    for (int i = 0; i < 2; i++) { /* it greets each time */
        if (i > 0)
            holder_found(site(1, 0)->holder, site_handle(site(1, 0), site(0, 0)), NULL);
        else
            publish(site(1, 0), STORE_APP, &by_first);
        world_run(world, 2000);
        assert_int_equal(by_first, CODE_SUCCESS);
        assert_int_equal(held_by(site(0, 0)), 2);
    }
    lookup(site(0, 1), site(1, 2), false, &found_it);
    world_run(world, 1000);
    assert_int_equal(found_it, CODE_SUCCESS);
    close_world();
}

static void named(void *arg, uint32_t node, const char *why)
{
    (void)why;
    *(uint32_t *)arg = node;
}

/* The holder is named once it holds: leaders that met there before would get a context id of no
 * range. */
static void test_named(void **state)
{
    uint32_t node = HOLDER_NONE, again = HOLDER_NONE, other = HOLDER_NONE, first;
    (void)state;
    open_world(2, 2);
    first = site_handle(site(1, 0), site(0, 0));
    holder_where(site(0, 0)->holder, named, &node);
    while (strcmp(state_of(site(0, 0)), "collects") != 0)
        world_run(world, 1);
    holder_where(site(0, 0)->holder, named, &again);
    holder_found(site(1, 0)->holder, first, NULL); /* it greets, and knows it soon */
    holder_where(site(1, 0)->holder, named, &other);
    while (strcmp(state_of(site(0, 0)), "collects") == 0) {
        assert_int_equal(node, HOLDER_NONE);
        assert_int_equal(again, HOLDER_NONE);
        assert_int_equal(other, HOLDER_NONE);
        world_run(world, 1);
    }
    world_run(world, 1000);
    assert_int_equal(node, 0);
    assert_int_equal(again, 0);
    assert_int_equal(other, first);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outlives),
        cmocka_unit_test(test_unanswered),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_end_together),
        cmocka_unit_test(test_heir_that_never_asked),
        cmocka_unit_test(test_leaves_while_collecting),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_unpublished),
        cmocka_unit_test(test_parted),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
