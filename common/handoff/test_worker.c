/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the worker: each call is made once, in order, on another thread; each work is done,
 * dropped or the asker's, once, whenever its call returns.
 */
#include "common/handoff/worker.h"

#include "common/util/clock.h"
#include "common/util/test_cmocka.h"

#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

enum { CALLS = 1000, LONG_MS = 20000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* a call that hangs waits for it */
static _Atomic unsigned called, dropped, hanging;
static unsigned ndone;
static pthread_t loop;
static struct event_base *base;
static struct handoff *handoff;

static bool unloadable; /* no object can be kept from being unloaded */

/* thread_stay_loaded() asks libc this first. */
int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    static char none[] = "";
    static struct link_map program = {.l_name = none};
    (void)address, (void)info, (void)flags;
    *extra = &program;
    return !unloadable;
}

struct job {
    struct work work;
    unsigned number;
    bool hangs;
};

static void call(struct work *work)
{
    struct job *job = (struct job *)work;
    assert_false(pthread_equal(pthread_self(), loop));
    if (job->hangs) {
        hanging++;
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    } else {
        assert_int_equal(job->number, called);
    }
    called++;
}

static void done(struct handoff_item *item)
{
    struct job *job = (struct job *)item;
    assert_true(pthread_equal(pthread_self(), loop));
    assert_int_equal(job->number, ndone);
    ndone++;
    free(job);
}

static void drop(struct work *work)
{
    dropped++;
    free(work);
}

static const struct work_ops ops = {call, done, drop};

static int begin(void **state)
{
    (void)state;
    loop = pthread_self();
    called = dropped = hanging = ndone = 0;
    base = event_base_new();
    handoff = handoff_new(base);
    return handoff != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    handoff_free(handoff);
    event_base_free(base);
    return 0;
}

static struct job *ask(struct worker *worker, unsigned number, bool hangs)
{
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    job->number = number;
    job->hangs = hangs;
    assert_true(worker_do(worker, &job->work));
    return job;
}

static void await(const _Atomic unsigned *count, unsigned n)
{
    for (int64_t by = now_ms() + LONG_MS; *count < n && now_ms() < by;)
        poll(NULL, 0, 1);
    assert_int_equal(*count, n);
}

static void all_are_called_and_done_in_order(void **state)
{
    struct worker *worker = worker_new(&ops, handoff);
    (void)state;
    assert_int_equal(worker_since(worker), 0);
    for (unsigned i = 0; i < CALLS; i++)
        ask(worker, i, false);
    while (ndone < CALLS)
        event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(worker_since(worker), 0);
    assert_true(worker_close(worker, now_ms() + LONG_MS));
    assert_int_equal(dropped, 0);
}

static void one_that_is_idle_or_never_began_is_closed(void **state)
{
    (void)state;
    assert_true(worker_close(NULL, 0));
    assert_true(worker_close(worker_new(&ops, handoff), now_ms()));
    struct worker *worker = worker_new(&ops, handoff);
    ask(worker, 0, false);
    await(&called, 1);
    assert_true(worker_close(worker, now_ms() + LONG_MS));
    handoff_run(handoff);
    assert_int_equal(ndone + dropped, 1);
}

/* What waits behind a call that hangs is dropped, and the thread is left behind until it returns.
 */
static void one_that_hangs_is_left_behind(void **state)
{
    struct worker *worker = worker_new(&ops, handoff);
    (void)state;
    pthread_mutex_lock(&gate);
    int64_t before = now_ms();
    ask(worker, 0, true);
    ask(worker, 0, false);
    await(&hanging, 1);
    assert_in_range(worker_since(worker), before, now_ms());
    assert_false(worker_close(worker, now_ms() + 20));
    assert_int_equal(called, 0);
    pthread_mutex_unlock(&gate);
    await(&dropped, 2);
    assert_int_equal(called, 1);
    handoff_run(handoff);
    assert_int_equal(ndone, 0);
}

static void an_asker_without_a_loop_waits(void **state)
{
    struct worker *worker = worker_make(&ops, NULL, NULL);
    (void)state;
    struct job *job = ask(worker, 0, false);
    assert_true(worker_finish(worker, now_ms() + LONG_MS));
    assert_int_equal(called, 1);
    free(job);
    called = 0;
    pthread_mutex_lock(&gate);
    worker = worker_make(&ops, NULL, NULL);
    ask(worker, 0, true);
    assert_false(worker_finish(worker, now_ms() + 20));
    pthread_mutex_unlock(&gate);
    await(&dropped, 1);
}

/* What cannot be left behind would have to be waited for, without a deadline. */
static void a_thread_that_cannot_be_left_behind_does_not_begin(void **state)
{
    struct worker *worker = worker_new(&ops, handoff);
    struct work work;
    (void)state;
    unloadable = true;
    bool taken = worker_do(worker, &work);
    unloadable = false;
    assert_false(taken);
    assert_true(worker_close(worker, now_ms()));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(all_are_called_and_done_in_order),
        TEST(one_that_is_idle_or_never_began_is_closed),
        TEST(one_that_hangs_is_left_behind),
        TEST(an_asker_without_a_loop_waits),
        TEST(a_thread_that_cannot_be_left_behind_does_not_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
