/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which security module tasks are told to use.
 */
#include "common/nspace/psec.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

#include <stdio.h>

/* @param list what libpmix has @param wanted what a task is told */
static void choose(const char *list, const char *wanted)
{
    char mode[128], first[] = "PMIX_RANK=3", last[] = "PMIX_MCA_psec=munge,native", both[128];
    char *env[] = {first, mode, last, NULL};
    snprintf(mode, sizeof mode, "PMIX_SECURITY_MODE=%s", list);
    snprintf(both, sizeof both, "PMIX_SECURITY_MODE=%s", wanted);
    psec_choose(env);
    assert_string_equal(mode, both);
    assert_string_equal(first, "PMIX_RANK=3");
    assert_string_equal(last, "PMIX_MCA_psec=munge,native");
}

static void test_native(void **state)
{
    (void)state;
    choose("munge,native", "native");
    choose("native,munge", "native");
    choose("native", "native");
    choose("munge,dummy,native,none", "native");
}

/* The admin has told libpmix to use another one alone. */
static void test_other(void **state)
{
    (void)state;
    choose("munge", "munge");
    choose("munge,nativex", "munge,nativex");
    choose("", "");
}

int main(void)
{
    char *none[] = {NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_other),
    };
    psec_choose(none);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
