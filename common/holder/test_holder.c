/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what outlives a holder, and what does not, however it ends.
 */
#include "common/holder/test_holder_kit.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What waits at a server, for a holder that is not there yet, has a bound. What is beyond it fails
 * at once, and all else goes on. */
static void test_too_much_waits(void **state)
{
    enum { LEN = 1 << 20, MANY = 32 };
    static const unsigned char bytes[LEN];
    int32_t status[MANY + 1], ends = 1;
    (void)state;
    open_world(5, 2);
    site(0, 0)->cut_until = world->now + 1000;
    for (uint32_t i = 0; i <= MANY; i++) {
        struct wire_out out = {0};
        status[i] = 1;
        wire_put_u8(&out, HOLDER_UNPUBLISH);
        wire_put_raw(&out, bytes, LEN - 1024);
        request(site(1, 1), &out, &status[i]);
    }
    assert_int_equal(status[MANY - 1], 1);
    assert_int_equal(status[MANY], CODE_FULL);
    world_run(world, 5000);
    assert_int_equal(answered, MANY + 1);
    publish(site(1, 1), STORE_APP, &ends);
    world_run(world, 2000);
    assert_int_equal(ends, CODE_SUCCESS);
    close_world();
}

/* What a step has published ends with it, if it says so, and not before. */
static void test_ends(void **state)
{
    int32_t status = 1;
    (void)state;
    open_world(3, 2);
    struct site *first = site(1, 0);
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
    assert_string_equal(state_of(site(2, 0)), "follows");
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

/* A step that looks for the holder again and again, as the one that it finds is leaving, looks at
 * once when that one is gone, whatever pause it makes. */
static void test_goodbye_ends_pause(void **state)
{
    (void)state;
    for (uint32_t ms = 0; ms < 2000; ms += 200) {
        int32_t status = 1, found_it = 1;
        open_world(11, 2);
        struct site *first = site(0, 0), *second = site(1, 0);
        publish(second, STORE_APP, &status);
        world_run(world, 2000);
        assert_string_equal(state_of(second), "follows");
        holder_close(first->holder); /* it takes no request any more, and is not lost yet */
        lookup(second, second, false, &found_it);
        world_run(world, 8000 + ms);
        assert_int_equal(found_it, 1);
        end_step(0, false);
        site_lost(second, first);
        for (uint32_t waited = 0; found_it == 1; waited += 10) {
            assert_true(waited < 500);
            world_run(world, 10);
        }
        close_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outlives),
        cmocka_unit_test(test_unanswered),
        cmocka_unit_test(test_too_much_waits),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_end_together),
        cmocka_unit_test(test_heir_that_never_asked),
        cmocka_unit_test(test_leaves_while_collecting),
        cmocka_unit_test(test_goodbye_ends_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
