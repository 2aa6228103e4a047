/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of timers that are set as libpmix sets those of calls with PMIX_TIMEOUT. event_assign() is
 * expiry.c's here, too.
 */
#include "common/server/process/expiry.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <string.h>
#include <unistd.h>

/* A call that waits, in libpmix's server. */
struct call {
    char before[100];
    struct event timer;
    int ran_out;
};

static void run_out(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct call *)arg)->ran_out++;
}

static void set(struct event_base *base, struct call *call)
{
    const struct timeval soon = {.tv_usec = 1000};
    assert_int_equal(event_assign(&call->timer, base, -1, 0, run_out, call), 0);
    assert_int_equal(evtimer_add(&call->timer, &soon), 0);
}

static struct call *call_new(void)
{
    struct call *call = malloc(sizeof *call);
    assert_non_null(call);
    memset(call, 0xff, sizeof *call); /* as memory that was used before */
    call->ran_out = 0;
    return call;
}

/* Both loops end when no event is left; one whose heap is damaged never does. */
static void loop(struct event_base *base)
{
    alarm(60);
    event_base_dispatch(base);
    alarm(0);
}

/* Each local caller sets the timer; there are others in the heap. */
static void a_timer_that_is_set_again(void **state)
{
    struct event_base *base = event_base_new();
    struct call *calls[5];
    (void)state;
    for (size_t i = 0; i < 5; i++)
        set(base, calls[i] = call_new());
    for (size_t n = 0; n < 2; n++)
        for (size_t i = 1; i < 4; i++)
            set(base, calls[i]);
    event_del(&calls[2]->timer); /* answered */
    loop(base);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(calls[i]->ran_out, i != 2);
        free(calls[i]);
    }
    event_base_free(base);
}

/* The engine has the deadline of what was handed up; of what waits for others of the node it has
 * not. */
static void a_call_that_is_handed_up(void **state)
{
    struct event_base *base = event_base_new();
    struct call *before = call_new(), *after = call_new(), *both = call_new(), *here = call_new();
    (void)state;
    set(base, before);
    set(base, both);
    set(base, here);
    expiry_handed_up(before);
    expiry_handed_up(both);
    set(base, both);
    expiry_handed_up(after);
    set(base, after);
    loop(base);
    assert_int_equal(before->ran_out + after->ran_out + both->ran_out, 0);
    assert_int_equal(here->ran_out, 1);
    set(base, before); /* another call, at the same place */
    loop(base);
    assert_int_equal(before->ran_out, 1);
    free(before);
    free(after);
    free(both);
    free(here);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_is_set_again),
        cmocka_unit_test(a_call_that_is_handed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
