/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of how runs of one step are told apart, against a slurmctld that says what the test says.
 */
#include "plugins/slurm/run.h"

#include "shims/slurm/slurm_abi.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOB = 7, STEP = 3 };

/* slurmctld: when the components of the step were started, or an error. */
static time_t starts[4];
static uint32_t nstarts;
static int error;
static unsigned kills;

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

#if SLURM_ABI_RELEASE < 0x190b
int slurm_abi_raw_get_steps(time_t update_time, uint32_t job, uint32_t step,
                            struct slurm_abi_step_records **found, uint16_t flags)
{
    (void)update_time;
    (void)flags;
    assert_int_equal(job, JOB);
    assert_int_equal(step, STEP);
    return get(found);
}
#else
int slurm_abi_raw_get_steps(struct slurm_abi_step_id *id, struct slurm_abi_step_records **found,
                            uint16_t flags)
{
    (void)flags;
    assert_int_equal(id->job_id, JOB);
    assert_int_equal(id->step_id, STEP);
    return get(found);
}
#endif

void slurm_abi_free_steps(struct slurm_abi_step_records *found)
{
    free(found->steps);
    free(found);
}

#if SLURM_ABI_KILL == 1
int slurm_abi_raw_kill(uint32_t job, uint32_t step, uint16_t sig)
{
#elif SLURM_ABI_KILL == 2
int slurm_abi_raw_kill(uint32_t job, uint32_t step, uint16_t sig, uint16_t flags)
{
    (void)flags;
#else
int slurm_abi_raw_kill(struct slurm_abi_step_id *id, uint16_t sig, uint16_t flags)
{
    uint32_t job = id->job_id, step = id->step_id;

    (void)flags;
#endif
    assert_int_equal(job, JOB);
    assert_int_equal(step, STEP);
    assert_int_equal(sig, SIGKILL);
    kills++;
    return SLURM_ABI_SUCCESS;
}

static void slurmctld_has(uint32_t n, time_t first, time_t second)
{
    nstarts = n;
    starts[0] = first;
    starts[1] = second;
    error = 0;
    kills = 0;
}

static void own_run_is_killed(void **state)
{
    struct step_run run;

    (void)state;
    slurmctld_has(1, 1000, 0);
    assert_int_equal(step_run_read(JOB, STEP, &run), 0);
    assert_int_equal(run.first, 1000);
    assert_int_equal(step_run_kill(JOB, STEP, &run), 0);
    assert_int_equal(kills, 1);
}

static void later_run_is_left_alone(void **state)
{
    struct step_run run;

    (void)state;
    slurmctld_has(1, 1000, 0);
    assert_int_equal(step_run_read(JOB, STEP, &run), 0);
    slurmctld_has(1, 1007, 0);
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    slurmctld_has(1, 993, 0); /* its clock was set back */
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
    run = (struct step_run){0}; /* not known: nothing that is there can be it */
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
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
    assert_int_equal(step_run_kill(JOB, STEP, &run), 0);
    slurmctld_has(2, 1003, 1005);
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
    assert_int_equal(kills, 0);
}

static void no_record_is_no_step(void **state)
{
    struct step_run run = {1000, 1000};

    (void)state;
    slurmctld_has(0, 0, 0);
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    error = SLURM_ABI_INVALID_JOB_ID;
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
    assert_int_equal(errno, SLURM_ABI_ALREADY_DONE);
    error = ETIMEDOUT; /* who asks tries again */
    assert_int_equal(step_run_kill(JOB, STEP, &run), -1);
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
    struct step_run run;

    (void)state;
    assert_non_null(text);
    run = step_run_next(&at);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
