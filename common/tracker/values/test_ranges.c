/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of numbers as texts. */
#include "common/tracker/values/ranges.h"

#include "common/util/test_cmocka.h"

#include <string.h>

static void reads(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *written;
    } cases[] = {
        {"", 0, ""},
        {"0", 0, "0"},
        {"0-3", 0, "0-3"},
        {"1,3-4,9", 0, "1,3-4,9"},
        {"9,3-4,1-2", 0, "1-4,9"},
        {"7-7,7", 0, "7"},
        {"10", -1, NULL},
        {"0-10", -1, NULL},
        {"3-1", -1, NULL},
        {"1,", -1, NULL},
        {",1", -1, NULL},
        {"1,,2", -1, NULL},
        {"1-", -1, NULL},
        {"-1", -1, NULL},
        {"1-2-3", -1, NULL},
        {"[1]", -1, NULL},
        {"a", -1, NULL},
        {"1 2", -1, NULL},
        {",", -1, NULL},
        {"99999999999999999999", -1, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ranges set = {0};
        char text[16];
        const char *from = cases[i].text;
        assert_int_equal(ranges_parse(&set, from, strlen(from), 9), cases[i].rc);
        ranges_text(&set, text, sizeof text);
        if (cases[i].rc == 0)
            assert_string_equal(text, cases[i].written);
        ranges_free(&set);
    }
}

/* What is behind the text's end is not looked at, and the greatest number is one. */
static void reads_a_part(void **state)
{
    struct ranges set = {0};
    (void)state;
    assert_int_equal(ranges_parse(&set, "4294967295,3", 10, UINT32_MAX), 0);
    assert_int_equal(ranges_count(&set), 1);
    assert_true(ranges_have(&set, UINT32_MAX));
    ranges_free(&set);
    assert_int_equal(ranges_parse(&set, "4294967296", 10, UINT32_MAX), -1);
    ranges_free(&set);
}

static void cuts(void **state)
{
    struct ranges set = {0};
    char text[16];
    (void)state;
    assert_int_equal(ranges_parse(&set, "1,3,5,7,9", 9, 9), 0);
    ranges_text(&set, text, sizeof text);
    assert_string_equal(text, "1,3,5,7,9");
    ranges_text(&set, text, 10);
    assert_string_equal(text, "1,3,5...");
    ranges_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(reads_a_part),
                                       cmocka_unit_test(cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
