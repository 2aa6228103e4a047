/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is read in scontrol's words.
 */
#include "plugins/slurm/resize_words.h"

#include "common/util/test_cmocka.h"

static void what_scontrol_shows(void **state)
{
    struct resize_job job;
    (void)state;
    assert_true(resize_learn("JobId=1 RunTime=00:00:30 TimeLimit=01:00:00 Partition=own QOS=high "
                             "Account=(null) OverSubscribe=NO Exclusive=NO",
                             &job));
    assert_false(job.whole);
    assert_int_equal(job.minutes, 59);
    assert_string_equal(job.qos, "high");
    assert_string_equal(job.account, "");
    assert_true(resize_learn("JobId=1 RunTime=00:00:30 TimeLimit=UNLIMITED Partition=own QOS=N/A "
                             "Account=a OverSubscribe=NO Exclusive=NODE",
                             &job));
    assert_true(job.whole);
    assert_int_equal(job.minutes, 0);
    assert_string_equal(job.qos, "");
    assert_false(resize_learn("slurm_load_jobs error: Invalid job id specified", &job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_scontrol_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
