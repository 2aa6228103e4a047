/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how runs of one step are told apart, against a slurmctld that says what the test says.
 */
#include "plugins/slurm/step_end.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"
#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOB = 7, STEP = 3 };

/* slurmctld: when the components of the step were started, or an error. */
static time_t starts[4];
static uint32_t nstarts;
static int error;
static unsigned kills;
static int kill_errors[8]; /* of the next kills */
static bool kill_fails;

static int get(struct slurm_abi_step_records **found)
{
    *found = NULL;
    errno = error;
    if (error != 0)
        return SLURM_ABI_ERROR;
    *found = calloc(1, sizeof(**found));
    assert_non_null(*found);
    (*found)->count = nstarts;
    (*found)->steps = calloc(nstarts + 1, sizeof(*(*found)->steps));
    assert_non_null((*found)->steps);
    for (uint32_t i = 0; i < nstarts; i++) {
        (*found)->steps[i].step_id = slurm_abi_step_id(JOB, STEP, i);
        (*found)->steps[i].start_time = starts[i];
    }
    return SLURM_ABI_SUCCESS;
}

int slurm_abi_get_step(uint32_t job, uint32_t step, struct slurm_abi_step_records **found)
{
    assert_int_equal(job, JOB);
    assert_int_equal(step, STEP);
    return get(found);
}

void slurm_abi_free_steps(struct slurm_abi_step_records *found)
{
    free(found->steps);
    free(found);
}

int slurm_abi_kill_step(uint32_t job, uint32_t step, uint16_t sig, bool fails)
{
    kill_fails = fails;
    assert_int_equal(job, JOB);
    assert_int_equal(step, STEP);
    assert_int_equal(sig, SIGKILL);
    errno = kills < 8 ? kill_errors[kills] : 0;
    kills++;
    return errno == 0 ? SLURM_ABI_SUCCESS : SLURM_ABI_ERROR;
}

const char *slurm_abi_strerror(int errnum)
{
    return errnum == SLURM_ABI_TRANSITION ? "in transition" : strerror(errnum);
}

static void slurmctld_has(uint32_t n, time_t first, time_t second)
{
    nstarts = n;
    starts[0] = first;
    starts[1] = second;
    error = 0;
    kills = 0;
    memset(kill_errors, 0, sizeof kill_errors);
}

/* What step_end() does between tries. */
static unsigned pauses, told, last_ms;
static enum step_end_answer answers[64];
static char said[256];
static bool hangs;
static unsigned gone_at; /* the step is gone when so many pauses are over; 0: never */
static unsigned give_up; /* after so many pauses */

static bool pause_test(void *arg, enum step_end_answer answer, unsigned ms)
{
    (void)arg;
    answers[pauses++] = answer;
    last_ms = ms;
    if (pauses == gone_at)
        nstarts = 0;
    return pauses == give_up;
}

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg;
    if (level > LOG_LEVEL_WARNING)
        return;
    assert_int_equal(level, hangs ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING);
    told++;
    snprintf(said, sizeof said, "%s", text);
}

static bool end_run(struct step_run run, uint64_t begun, bool fails)
{
    static const uint32_t jobs[] = {JOB};
    const struct step_end end = {.jobs = jobs,
                                 .runs = &run,
                                 .njobs = 1,
                                 .begun = begun,
                                 .step = STEP,
                                 .hangs = hangs,
                                 .fails = fails,
                                 .pause = pause_test};
    pauses = told = 0;
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return step_end(&end);
}

static bool end_it(bool fails)
{
    return end_run((struct step_run){1000, 1000}, 0, fails);
}

/* It is asked for again until the step is gone, however long that takes, and told once. */
static void tries_until_the_step_has_ended(void **state)
{
    (void)state;
    slurmctld_has(1, 1000, 0);
    error = ETIMEDOUT; /* slurmctld is away, for good */
    gone_at = 0;
    give_up = 40;
    assert_false(end_it(true));
    assert_int_equal(pauses, 40);
    assert_int_equal(told, 1);
    assert_string_equal(said,
                        "step 7.3 cannot be ended yet: Connection timed out; muster tries on, "
                        "or end it with: scancel 7.3");
    assert_int_equal(last_ms, STEP_END_SELDOM_MS);
    assert_int_equal(kills, 0);

    slurmctld_has(1, 1000, 0);
    kill_errors[0] = kill_errors[1] = ECONNREFUSED;
    gone_at = 4; /* two refusals, and it takes its time */
    give_up = 0;
    hangs = true; /* the user is told */
    assert_true(end_it(true));
    hangs = false;
    assert_int_equal(kills, 4);
    assert_int_equal(told, 1);
    assert_int_equal(answers[1], STEP_END_REFUSED);
    assert_int_equal(answers[2], STEP_END_ASKED);
    assert_int_equal(last_ms, STEP_END_LOOK_MS);
}

/* A job that is requeued ends its tasks by itself; a suspended one stays so, which is told. */
static void a_job_that_changes_its_state(void **state)
{
    (void)state;
    slurmctld_has(1, 1000, 0);
    kill_errors[0] = SLURM_ABI_TRANSITION;
    gone_at = 1;
    give_up = 0;
    assert_true(end_it(true));
    assert_int_equal(answers[0], STEP_END_BUSY);
    assert_int_equal(told, 0);

    slurmctld_has(1, 1000, 0);
    for (int i = 0; i < 7; i++)
        kill_errors[i] = SLURM_ABI_TRANSITION;
    gone_at = 8;
    assert_true(end_it(true));
    assert_int_equal(told, 1);
    assert_non_null(strstr(said, "cannot be ended yet: in transition; "));
    assert_int_equal(answers[7], STEP_END_ASKED);
}

static void a_step_may_end_without_failing(void **state)
{
    (void)state;
    slurmctld_has(1, 1000, 0);
    gone_at = 1;
    give_up = 0;
    assert_true(end_it(true));
    assert_true(kill_fails);
    slurmctld_has(1, 1000, 0);
    assert_true(end_it(false));
    assert_false(kill_fails);
}

/* slurmctld was away when the step began on the node that now has to end it. */
static void a_run_that_is_not_known(void **state)
{
    (void)state;
    slurmctld_has(1, 1000, 0);
    error = ETIMEDOUT;
    give_up = 1;
    assert_false(end_run((struct step_run){0}, 1001, true));
    assert_int_equal(answers[0], STEP_END_REFUSED);
    slurmctld_has(1, 1000, 0);
    gone_at = 1;
    give_up = 0;
    assert_true(end_run((struct step_run){0}, 1001, true));
    assert_int_equal(kills, 1);
    slurmctld_has(1, 1002, 0); /* of the job's next run */
    assert_true(end_run((struct step_run){0}, 1001, true));
    slurmctld_has(0, 0, 0);
    assert_true(end_run((struct step_run){0}, 1001, true));
    slurmctld_has(1, 1000, 0); /* a server knows its run */
    assert_true(end_run((struct step_run){0}, 0, true));
    assert_int_equal(kills, 0);
}

static void own_run_is_killed(void **state)
{
    struct step_run run;
    (void)state;
    slurmctld_has(1, 1000, 0);
    assert_int_equal(step_run_read(JOB, STEP, &run), 0);
    assert_int_equal(run.first, 1000);
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), 0);
    assert_int_equal(kills, 1);
}

static void later_run_is_left_alone(void **state)
{
    struct step_run run;
    (void)state;
    slurmctld_has(1, 1000, 0);
    assert_int_equal(step_run_read(JOB, STEP, &run), 0);
    slurmctld_has(1, 1007, 0);
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    slurmctld_has(1, 993, 0); /* its clock was set back */
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    run = (struct step_run){0}; /* not known: nothing that is there can be it */
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    assert_int_equal(kills, 0);
}

static void components_are_of_one_run(void **state)
{
    struct step_run run;
    (void)state;
    slurmctld_has(2, 1000, 1002);
    assert_int_equal(step_run_read(JOB, STEP, &run), 0);
    assert_int_equal(run.first, 1000);
    assert_int_equal(run.last, 1002);
    slurmctld_has(1, 1002, 0); /* the first one has ended */
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), 0);
    slurmctld_has(2, 1003, 1005);
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(kills, 0);
}

static void no_record_is_no_step(void **state)
{
    struct step_run run = {1000, 1000};
    (void)state;
    slurmctld_has(0, 0, 0);
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    error = SLURM_ABI_INVALID_JOB_ID;
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    error = ETIMEDOUT; /* the caller tries again */
    assert_int_equal(step_run_kill(JOB, STEP, &run, true), -1);
    assert_int_equal(errno, ETIMEDOUT);
    assert_int_equal(step_run_read(JOB, STEP, &run), -1);
    assert_int_equal(errno, ETIMEDOUT);
    assert_int_equal(kills, 0);
}

static void list(void **state)
{
    const struct step_run runs[] = {{1000, 1002}, {UINT64_MAX, UINT64_MAX}};
    char *text = step_run_list(runs, 2);
    const char *at = text;
    (void)state;
    assert_non_null(text);
    struct step_run run = step_run_next(&at);
    assert_memory_equal(&run, &runs[0], sizeof(run));
    run = step_run_next(&at);
    assert_memory_equal(&run, &runs[1], sizeof(run));
    run = step_run_next(&at);
    assert_int_equal(run.first, 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_run_is_killed),
        cmocka_unit_test(later_run_is_left_alone),
        cmocka_unit_test(components_are_of_one_run),
        cmocka_unit_test(no_record_is_no_step),
        cmocka_unit_test(list),
        cmocka_unit_test(tries_until_the_step_has_ended),
        cmocka_unit_test(a_job_that_changes_its_state),
        cmocka_unit_test(a_step_may_end_without_failing),
        cmocka_unit_test(a_run_that_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
