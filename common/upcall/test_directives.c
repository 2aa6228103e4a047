/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the table of directives: which values each takes, and what is said of those that it does
 * not.
 */
#include "common/upcall/directives.h"

#include "common/util/log.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <string.h>

static char line[1024]; /* the last one */

static void sink(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level;
    snprintf(line, sizeof line, "%s", text);
}

static pmix_info_t info_of(const char *key, pmix_data_type_t type)
{
    pmix_info_t info = {.value = {.type = type}};
    strcpy(info.key, key);
    return info;
}

static pmix_status_t check(enum directives_call call, const pmix_info_t *info)
{
    line[0] = '\0';
    return directives_check(call, "", info, 1);
}

/* What libpmix's own server takes as well. */
static void values_as_clients_give_them(void **state)
{
    static const pmix_data_type_t numbers[] = {
        PMIX_INT,    PMIX_INT8,   PMIX_INT16,  PMIX_INT32, PMIX_INT64, PMIX_UINT,  PMIX_UINT8,
        PMIX_UINT16, PMIX_UINT32, PMIX_UINT64, PMIX_SIZE,  PMIX_FLOAT, PMIX_DOUBLE};
    pmix_data_array_t none = {.type = PMIX_UNDEF};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pmix_info_t info = info_of(PMIX_TIMEOUT, numbers[i]);
        assert_int_equal(check(CALL_FENCE, &info), PMIX_SUCCESS);
    }
    pmix_info_t flag = info_of(PMIX_COLLECT_DATA, PMIX_UNDEF); /* a flag without a value */
    assert_int_equal(check(CALL_FENCE, &flag), PMIX_SUCCESS);
    assert_true(directive_is_on(&flag, PMIX_COLLECT_DATA));
    pmix_info_t word = info_of(PMIX_COLLECT_DATA, PMIX_STRING);
    word.value.data.string = (char *)"no";
    assert_int_equal(check(CALL_FENCE, &word), PMIX_SUCCESS);
    assert_false(directive_is_on(&word, PMIX_COLLECT_DATA));
    pmix_info_t added = info_of(PMIX_GROUP_ADD_MEMBERS, PMIX_DATA_ARRAY);
    assert_int_equal(check(CALL_CONSTRUCT, &added), PMIX_SUCCESS);
    added.value.data.darray = &none;
    assert_int_equal(check(CALL_CONSTRUCT, &added), PMIX_SUCCESS);
    assert_string_equal(line, "");
}

static void the_reason_is_said(void **state)
{
    pmix_info_t info = info_of(PMIX_TIMEOUT, PMIX_STRING);
    (void)state;
    info.value.data.string = (char *)"30";
    assert_int_equal(check(CALL_LOOKUP, &info), PMIX_ERR_BAD_PARAM);
    assert_non_null(strstr(line, "PMIx_Lookup: PMIX_TIMEOUT is the string \"30\"; give a number"));
    info = info_of(PMIX_TIMEOUT, PMIX_INT);
    info.value.data.integer = -1;
    assert_int_equal(check(CALL_FENCE, &info), PMIX_ERR_BAD_PARAM);
    assert_non_null(strstr(line, "PMIx_Fence: PMIX_TIMEOUT is PMIX_INT -1; give a number"));
    info = info_of(PMIX_HOSTNAME, PMIX_UINT32);
    assert_int_equal(check(CALL_QUERY, &info), PMIX_ERR_BAD_PARAM);
    assert_non_null(strstr(line, "PMIx_Query_info: PMIX_HOSTNAME is "));
    info = info_of(PMIX_WDIR, PMIX_STRING); /* without its text */
    assert_int_equal(check(CALL_SPAWN, &info), PMIX_ERR_BAD_PARAM);
    info = info_of(PMIX_WAIT, PMIX_PROC_STATE);
    assert_int_equal(check(CALL_LOOKUP, &info), PMIX_ERR_BAD_PARAM);
    assert_non_null(strstr(line, "give true or false (PMIX_BOOL), or a number"));
}

static void what_is_required(void **state)
{
    pmix_info_t info = info_of("no.directive", PMIX_BOOL);
    (void)state;
    assert_int_equal(check(CALL_FENCE, &info), PMIX_SUCCESS);
    PMIX_INFO_REQUIRED(&info);
    assert_int_equal(check(CALL_FENCE, &info), PMIX_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(line, "\"no.directive\" is required and not known"));
    assert_int_equal(check(CALL_PUBLISH, &info), PMIX_SUCCESS); /* it is published */
    info = info_of(PMIX_GROUP_OPTIONAL, PMIX_BOOL);
    assert_int_equal(check(CALL_CONSTRUCT, &info), PMIX_SUCCESS);
    PMIX_INFO_REQUIRED(&info);
    assert_int_equal(check(CALL_CONSTRUCT, &info), PMIX_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(line, "PMIX_GROUP_OPTIONAL is required and not served: "));
    info = info_of(PMIX_PERSISTENCE, PMIX_PERSIST); /* of another call */
    PMIX_INFO_REQUIRED(&info);
    assert_int_equal(check(CALL_FENCE, &info), PMIX_ERR_NOT_SUPPORTED);
}

static void the_first_fault_counts(void **state)
{
    pmix_info_t info[] = {info_of(PMIX_COLLECT_DATA, PMIX_UNDEF), info_of(PMIX_TIMEOUT, PMIX_BOOL),
                          info_of("no.directive", PMIX_BOOL)};
    (void)state;
    PMIX_INFO_REQUIRED(&info[2]);
    assert_int_equal(directives_check(CALL_DESTRUCT, "ocean", info, 3), PMIX_ERR_BAD_PARAM);
    assert_non_null(strstr(line, "PMIx_Group_destruct of \"ocean\": the directive"));
}

static void numbers(void **state)
{
    pmix_value_t value = {.type = PMIX_DOUBLE, .data = {.dval = 0.2}};
    uint32_t n = 7;
    (void)state;
    assert_true(directive_number(&value, &n));
    assert_int_equal(n, 1); /* none would be for ever */
    value = (pmix_value_t){.type = PMIX_UINT64, .data = {.uint64 = UINT64_MAX}};
    assert_true(directive_number(&value, &n));
    assert_int_equal(n, UINT32_MAX);
    value = (pmix_value_t){.type = PMIX_INT8, .data = {.int8 = -1}};
    assert_false(directive_number(&value, &n));
    value = (pmix_value_t){.type = PMIX_BOOL};
    assert_false(directive_number(&value, &n));
    assert_int_equal(n, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_as_clients_give_them),
        cmocka_unit_test(the_reason_is_said),
        cmocka_unit_test(what_is_required),
        cmocka_unit_test(the_first_fault_counts),
        cmocka_unit_test(numbers),
    };
    log_open(sink, NULL, LOG_LEVEL_INFO, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
