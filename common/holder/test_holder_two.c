/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the holder's end while servers do not agree: on who holds.
 */
#include "common/holder/test_holder_kit.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    /* Now the second step's server is said to be the holder, as the first one is cut off. */
    site(0, 0)->cut_until = world->now + PEER_MS - 500;
    holder_found(second->holder, 0, NULL);
    holder_found(of->holder, site_handle(of, second), NULL);
    world_run(world, PEER_MS - 1500);
    assert_string_equal(state_of(site(0, 0)), "holds");
    assert_string_equal(state_of(second), "holds");
    assert_int_equal(held_by(second), 1);
    put_unpublish(&out, of);
    request(of, &out, &status);
    world_run(world, 500);
    assert_int_equal(status, CODE_SUCCESS);
    assert_int_equal(held_by(second), 0);
    world_run(world, 40000); /* the second one has asked again, and its follower has missed it */
    assert_string_equal(state_of(second), "follows");
    lookup(site(0, 1), of, false, &found_it);
    world_run(world, 1000);
    assert_int_equal(found_it, CODE_NOT_FOUND);
    close_world();
}

/* An older step begins to ask for something: it becomes the holder, and misses nothing of what the
 * one before it had, nor does a third step that had followed that one. */
static void test_older(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        int32_t status[2] = {1, 1}, found_it[2] = {1, 1};
        open_world(seed, 0);
        for (uint32_t step = 1; step < 3; step++) {
            start(step);
            publish(site(step, 0), STORE_APP, &status[step - 1]);
        }
        world_run(world, 2000);
        assert_string_equal(state_of(site(1, 0)), "holds");
        start(0);
        for (uint32_t step = 1; step < 3; step++)
            lookup(site(0, 1), site(step, 0), false, &found_it[step - 1]);
        world_run(world, 2000);
        for (uint32_t step = 1; step < 3; step++) {
            assert_int_equal(status[step - 1], CODE_SUCCESS);
            assert_int_equal(found_it[step - 1], CODE_SUCCESS);
        }
        assert_string_equal(state_of(site(0, 0)), "holds");
        assert_string_equal(state_of(site(1, 0)), "follows");
        close_world();
    }
}

static void named(void *arg, uint32_t node, const char *why)
{
    (void)why;
    *(uint32_t *)arg = node;
}

/* The holder is named once it holds: while it collects it may still hear of an older one, and
 * leaders that met here would have to move. */
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
    holder_found(site(1, 0)->holder, first, NULL); /* it follows */
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
        cmocka_unit_test(test_unpublished),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
