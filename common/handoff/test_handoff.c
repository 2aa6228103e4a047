/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the hand-off: many threads post, one loop runs everything once and in order per thread.
 */
#include "common/handoff/handoff.h"

#include "common/util/test_cmocka.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 8, ITEMS = 5000 };

struct poster {
    pthread_t thread;
    struct handoff *handoff;
    struct event_base *base;
    uint32_t ran; /* the loop's: items so far, which is the next one's number */
    uint32_t wrong;
    uint32_t *left; /* the loop's: items of all threads that have not run */
};

struct item {
    struct handoff_item item;
    struct poster *poster;
    uint32_t number;
    uint32_t reposts; /* how often it posts itself again, from the loop */
};

static void run(struct handoff_item *base)
{
    struct item *item = (struct item *)base;
    struct poster *poster = item->poster;
    poster->wrong += item->number != poster->ran++;
    if (--*poster->left == 0)
        event_base_loopbreak(poster->base);
    free(item);
}

static struct handoff_item *new_item(struct poster *poster, uint32_t number)
{
    struct item *item = calloc(1, sizeof *item);
    if (item == NULL)
        abort();
    *item = (struct item){.poster = poster, .number = number};
    return &item->item;
}

static void post(struct poster *poster, uint32_t number)
{
    handoff_post(poster->handoff, new_item(poster, number), run);
}

static void *post_all(void *arg)
{
    for (uint32_t i = 0; i < ITEMS; i++)
        post(arg, i);
    return NULL;
}

static void many_threads_and_one_loop(void **state)
{
    struct event_base *base = event_base_new();
    struct handoff *handoff = handoff_new(base);
    struct poster posters[THREADS];
    uint32_t left = THREADS * ITEMS;
    (void)state;
    assert_non_null(handoff);
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.handoff = handoff, .base = base, .left = &left};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    event_base_dispatch(base); /* ends when the last item has run: a lost wake hangs here */
    for (int i = 0; i < THREADS; i++) {
        pthread_join(posters[i].thread, NULL);
        assert_int_equal(posters[i].ran, ITEMS);
        assert_int_equal(posters[i].wrong, 0);
    }
    assert_int_equal(left, 0);
    handoff_free(handoff);
    event_base_free(base);
}

static void repost(struct handoff_item *base)
{
    struct item *item = (struct item *)base;
    item->poster->ran++;
    if (item->reposts-- > 0)
        handoff_post(item->poster->handoff, base, repost);
    else
        event_base_loopbreak(item->poster->base);
}

static void posting_from_the_loop(void **state)
{
    struct event_base *base = event_base_new();
    struct poster poster = {.handoff = handoff_new(base), .base = base};
    struct item item = {.poster = &poster, .reposts = 100};
    (void)state;
    handoff_post(poster.handoff, &item.item, repost);
    event_base_dispatch(base);
    assert_int_equal(poster.ran, 101);
    handoff_free(poster.handoff);
    event_base_free(base);
}

/* At the end the queue is run by hand, with or without a wake that the loop has not seen. */
static void running_without_the_loop(void **state)
{
    struct event_base *base = event_base_new();
    uint32_t left = 100;
    struct poster poster = {.handoff = handoff_new(base), .base = base, .left = &left};
    (void)state;
    handoff_run(poster.handoff);
    for (uint32_t i = 0; i < 10; i++)
        post(&poster, i);
    handoff_run(poster.handoff);
    assert_int_equal(poster.ran, 10);
    handoff_run(poster.handoff);
    for (uint32_t i = 10; i < 20; i++)
        post(&poster, i);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(poster.ran, 20);
    assert_int_equal(poster.wrong, 0);
    handoff_free(poster.handoff);
    event_base_free(base);
}

/* What may wait does not wake the loop, and has its turn ahead of what is posted later. */
static void posting_behind(void **state)
{
    struct event_base *base = event_base_new();
    uint32_t left = 4;
    struct poster poster = {.handoff = handoff_new(base), .base = base, .left = &left};
    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        handoff_post_behind(poster.handoff, new_item(&poster, i), run);
    event_base_loop(base, EVLOOP_NONBLOCK);
    assert_int_equal(poster.ran, 0);
    post(&poster, 2);
    handoff_post_behind(poster.handoff, new_item(&poster, 3), run);
    event_base_dispatch(base); /* hangs if the item behind has taken the wake */
    assert_int_equal(poster.ran, 4);
    assert_int_equal(poster.wrong, 0);
    handoff_free(poster.handoff);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_and_one_loop),
        cmocka_unit_test(posting_from_the_loop),
        cmocka_unit_test(running_without_the_loop),
        cmocka_unit_test(posting_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
