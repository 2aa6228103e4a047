/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of which processes wait for a debugger.
 */
#include "common/nspace/stop.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

enum { LIBPMIX_5 = 0x050007, LIBPMIX_7 = 0x070000, TASKS = 4 };

/* @return what stop_read() does with @p text; NULL: the setting is not there */
static int reads(const char *text, struct stop *stop, struct err *err)
{
    struct boot boot = {.ntasks = TASKS};
    if (text != NULL)
        boot_set(&boot, BOOT_DEBUG, text);
    int rc = stop_read(stop, &boot, err);
    boot_free(&boot);
    return rc;
}

static void is(const char *text, enum stop_where where, uint32_t rank)
{
    struct stop stop;
    struct err err = {0};
    char again[STOP_TEXT_SIZE];
    assert_int_equal(reads(text, &stop, &err), 0);
    assert_int_equal(stop.where, where);
    assert_int_equal(stop.rank, rank);
    const char *written = stop_text(&stop, again);
    assert_true(text == NULL ? written == NULL : strcmp(written, text) == 0);
}

static void is_bad(const char *text, const char *why)
{
    struct stop stop;
    struct err err = {0};
    assert_int_equal(reads(text, &stop, &err), -1);
    assert_non_null(strstr(err.text, why));
}

static void reads_what_is_right(void **state)
{
    (void)state;
    is(NULL, STOP_NOWHERE, STOP_ALL);
    is("stop-in-init", STOP_IN_INIT, STOP_ALL);
    is("stop-in-app", STOP_IN_APP, STOP_ALL);
    is("stop-in-init:3", STOP_IN_INIT, 3);
    is("stop-in-app:0", STOP_IN_APP, 0);
}

static void refuses_what_is_wrong(void **state)
{
    (void)state;
    is_bad("stop", "found \"stop\"");
    is_bad("stop-in-initial", "stop-in-init or stop-in-app");
    is_bad("stop-on-exec", "for processes that PMIx_Spawn starts");
    is_bad("stop-in-init:", "found");
    is_bad("stop-in-init:-1", "found");
    is_bad("stop-in-init:1,2", "found");
    is_bad("stop-in-init:4", "no rank 4 among the 4 tasks");
    is_bad("stop-in-init:99999999999999999999", "no rank");
}

static void one_rank_needs_a_newer_libpmix(void **state)
{
    (void)state;
    const struct stop one = {STOP_IN_INIT, 1}, all = {STOP_IN_INIT, STOP_ALL},
                      program = {STOP_IN_APP, 1};
    struct err err = {0};
    assert_int_equal(stop_judge(&one, LIBPMIX_7, &err), 0);
    assert_int_equal(stop_judge(&all, LIBPMIX_5, &err), 0);
    assert_int_equal(stop_judge(&program, LIBPMIX_5, &err), 0);
    assert_int_equal(stop_judge(&one, LIBPMIX_5, &err), -1);
    assert_non_null(strstr(err.text, "libpmix 5.0.7, which would stop all"));
}

/* @return whether @p text names a target */
static bool names(const char *text, const char *nspace, uint32_t rank)
{
    struct boot boot = {.ntasks = TASKS};
    char found[STOP_NSPACE_SIZE] = "", again[STOP_TEXT_SIZE];
    uint32_t of = 0;
    boot_set(&boot, BOOT_DEBUG, text);
    bool is = stop_target(&boot, found, &of);
    struct stop stop;
    struct err err = {0};
    assert_int_equal(stop_read(&stop, &boot, &err), is ? 0 : -1);
    assert_int_equal(stop.where, STOP_NOWHERE);
    boot_free(&boot);
    if (!is)
        return false;
    stop_put_target(again, found, of);
    assert_string_equal(again, text);
    return strcmp(found, nspace) == 0 && of == rank;
}

static void daemons_have_a_target(void **state)
{
    char text[400];
    (void)state;
    assert_true(names("target:* slurm.4711.0", "slurm.4711.0", STOP_ALL));
    assert_true(names("target:3 a b", "a b", 3));
    assert_false(names("target:slurm.4711.0", "", 0));
    assert_false(names("target:* ", "", 0));
    assert_false(names("target:-1 x", "", 0));
    assert_false(names("target:4294967295 x", "", 0));
    snprintf(text, sizeof text, "target:* %0300d", 0);
    assert_false(names(text, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_right),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(one_rank_needs_a_newer_libpmix),
        cmocka_unit_test(daemons_have_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
