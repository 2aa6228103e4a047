/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what directives of a collective become.
 */
#include "common/upcall/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct collective c;

static pmix_info_t required(const char *key)
{
    pmix_info_t info = {.value = {.type = PMIX_UNDEF}};
    strcpy(info.key, key);
    PMIX_INFO_REQUIRED(&info);
    return info;
}

static pmix_info_t local_status(pmix_status_t status)
{
    pmix_info_t info = {.value = {.type = PMIX_STATUS, .data = {.status = status}}};
    strcpy(info.key, PMIX_LOCAL_COLLECTIVE_STATUS);
    return info;
}

static int begin(void **state)
{
    (void)state;
    c = (struct collective){.kind = COLL_CONSTRUCT, .id = (char *)"ocean"};
    return 0;
}

/* Where no participant is lost, the call is not held until a loss is told. */
static void a_refusal_is_no_loss(void **state)
{
    (void)state;
    const pmix_info_t info[] = {required("no.directive"), local_status(PMIX_SUCCESS)};
    collective_directives(&c, info, 2);
    assert_int_equal(c.call.status, PMIX_ERR_NOT_SUPPORTED);
    assert_false(c.lost);
    assert_int_equal(c.ncalls, 1);
}

static void the_first_loss_counts(void **state)
{
    (void)state;
    const pmix_info_t info[] = {local_status(PMIX_SUCCESS),
                                local_status(PMIX_ERR_PROC_TERM_WO_SYNC),
                                local_status(PMIX_ERR_TIMEOUT), local_status(PMIX_SUCCESS)};
    collective_directives(&c, info, 4);
    assert_int_equal(c.call.status, PMIX_ERR_PROC_TERM_WO_SYNC);
    assert_true(c.lost);
    assert_int_equal(c.ncalls, 4);
}

static void a_known_directive_may_be_required(void **state)
{
    (void)state;
    pmix_info_t info = required(PMIX_GROUP_FT_COLLECTIVE);
    collective_directives(&c, &info, 1);
    assert_int_equal(c.call.status, PMIX_SUCCESS);
    assert_true(c.survives);
}

static pmix_info_t text(const char *key, const char *value)
{
    pmix_info_t info = {.value = {.type = PMIX_STRING, .data = {.string = (char *)value}}};
    strcpy(info.key, key);
    return info;
}

static pmix_info_t range(pmix_data_range_t range)
{
    pmix_info_t info = {.value = {.type = PMIX_DATA_RANGE, .data = {.range = range}}};
    strcpy(info.key, PMIX_RANGE);
    PMIX_INFO_REQUIRED(&info);
    return info;
}

static void a_value_of_another_type_is_refused(void **state)
{
    static const char *const keys[] = {PMIX_GROUP_ASSIGN_CONTEXT_ID, PMIX_GROUP_INFO, PMIX_TIMEOUT,
                                       PMIX_COLLECT_DATA, PMIX_GROUP_ADD_MEMBERS};
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const pmix_info_t info = text(keys[i], "tomorrow");
        c = (struct collective){.kind = COLL_CONSTRUCT, .id = (char *)"ocean"};
        collective_directives(&c, &info, 1);
        assert_int_equal(c.call.status, PMIX_ERR_BAD_PARAM);
        assert_false(c.lost);
    }
}

/* Context ids are unique in the session. */
static void a_range_up_to_the_session_may_be_required(void **state)
{
    static const struct {
        pmix_data_range_t range;
        pmix_status_t status;
    } rows[] = {
        {PMIX_RANGE_SESSION, PMIX_SUCCESS},
        {PMIX_RANGE_NAMESPACE, PMIX_SUCCESS},
        {PMIX_RANGE_LOCAL, PMIX_SUCCESS},
        {PMIX_RANGE_PROC_LOCAL, PMIX_SUCCESS},
        {PMIX_RANGE_GLOBAL, PMIX_ERR_NOT_SUPPORTED},
        {PMIX_RANGE_RM, PMIX_ERR_NOT_SUPPORTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pmix_info_t info[] = {range(rows[i].range),
                                    text(PMIX_GROUP_ASSIGN_CONTEXT_ID, "yes")};
        c = (struct collective){.kind = COLL_CONSTRUCT, .id = (char *)"ocean"};
        collective_directives(&c, info, 2);
        assert_int_equal(c.call.status, rows[i].status);
        assert_int_equal(c.call.flags, ENGINE_WANT_CONTEXT_ID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_refusal_is_no_loss, begin),
        cmocka_unit_test_setup(the_first_loss_counts, begin),
        cmocka_unit_test_setup(a_known_directive_may_be_required, begin),
        cmocka_unit_test_setup(a_value_of_another_type_is_refused, begin),
        cmocka_unit_test_setup(a_range_up_to_the_session_may_be_required, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
