/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what the job has now: many ask the RM one question, and none waits for ever.
 * The test plays the back end and the clock.
 */
#include "common/server/job_now.h"

#include "common/util/test_cmocka.h"

#include <time.h>

enum { QUERY_S = 10 };

static int64_t now;
static unsigned nasked;
static rm_job_fn *answer;
static void *answer_arg;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
    return 0;
}

static void ask_rm(struct rm *rm, rm_job_fn *done, void *arg)
{
    (void)rm;
    nasked++;
    answer = done;
    answer_arg = arg;
}

/* What those that wait have got, in order. */
static int64_t got[8];
static unsigned ngot;

static void done(void *arg, int64_t seconds, const char *nodes, const char *why)
{
    assert_int_equal(nodes != NULL, seconds == 60);
    (void)arg;
    assert_int_equal(why != NULL, seconds < 0);
    got[ngot++] = seconds;
}

static const struct rm_ops ops = {.job_now = ask_rm}, none = {0};
static struct server server;
static struct job_wait waits[4];

static int begin(void **state)
{
    (void)state;
    now = 1000;
    nasked = ngot = 0;
    server = (struct server){.rm_ops = &ops, .rm = (struct rm *)&server};
    server.conf.timeouts.query = QUERY_S;
    for (int i = 0; i < 4; i++)
        waits[i] = (struct job_wait){.done = done};
    return 0;
}

static void test_one_question_for_all(void **state)
{
    (void)state;
    job_now_ask(&server, &waits[0]);
    job_now_ask(&server, &waits[1]);
    assert_int_equal(nasked, 1);
    answer(answer_arg, 60, "node1=16", NULL);
    assert_true(ngot == 2 && got[0] == 60 && got[1] == 60);
    assert_int_equal(timers_wait(&server.timers), -1);
    job_now_ask(&server, &waits[0]);
    assert_int_equal(nasked, 2); /* the limit may have been changed */
    answer(answer_arg, -1, NULL, "slurmctld is away");
    assert_true(ngot == 3 && got[2] == JOB_NOW_UNKNOWN);
}

static void test_an_rm_that_does_not_answer(void **state)
{
    (void)state;
    job_now_ask(&server, &waits[0]);
    now += 4000;
    job_now_ask(&server, &waits[1]);
    assert_int_equal(timers_wait(&server.timers), QUERY_S * 1000 - 4000);
    now += QUERY_S * 1000 - 4000;
    timers_run(&server.timers);
    assert_true(ngot == 1 && got[0] == JOB_NOW_LATE);
    job_now_ask(&server, &waits[2]);
    assert_int_equal(nasked, 1); /* that one may still be answered */
    answer(answer_arg, 5, NULL, NULL);
    assert_true(ngot == 3 && got[1] == 5 && got[2] == 5);
}

static void test_an_rm_without_limits(void **state)
{
    (void)state;
    server.rm_ops = &none;
    job_now_ask(&server, &waits[0]);
    assert_true(ngot == 1 && got[0] == JOB_NOW_UNKNOWN);
}

static void test_the_end(void **state)
{
    (void)state;
    job_now_ask(&server, &waits[0]);
    job_now_close(&server);
    assert_true(ngot == 1 && got[0] == JOB_NOW_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_question_for_all, begin),
        cmocka_unit_test_setup(test_an_rm_that_does_not_answer, begin),
        cmocka_unit_test_setup(test_an_rm_without_limits, begin),
        cmocka_unit_test_setup(test_the_end, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
