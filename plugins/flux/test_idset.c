/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of broker ranks. */
#include "plugins/flux/idset.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdlib.h>

static void reads(void **state)
{
    static const struct {
        const char *text;
        int rc;
        uint32_t bits; /* of ranks 0 to 9 */
    } cases[] = {
        {"", 0, 0},
        {"0", 0, 1},
        {"0-3", 0, 0xf},
        {"[0-3]", 0, 0xf},
        {"1,3-4,9", 0, 0x21a},
        {"[]", 0, 0},
        {"10", -1, 0},
        {"0-10", -1, 0},
        {"3-1", -1, 0},
        {"1,", -1, 0},
        {",1", -1, 0},
        {"1-", -1, 0},
        {"[1", -1, 0},
        {"[", -1, 0},
        {"1]", -1, 0},
        {"a", -1, 0},
        {"1 2", -1, 0},
        {"-1", -1, 0},
        {"99999999999999999999", -1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct idset set = {0};
        uint32_t bits = 0;
        assert_int_equal(idset_parse(&set, cases[i].text, 10), cases[i].rc);
        for (uint32_t rank = 0; rank < 12; rank++)
            bits |= (uint32_t)idset_has(&set, rank) << rank;
        if (cases[i].rc == 0)
            assert_int_equal(bits, cases[i].bits);
        idset_free(&set);
    }
}

static void subtracts(void **state)
{
    static const struct {
        const char *a, *b, *left;
    } cases[] = {
        {"0-7", "0-7", ""}, {"0-7", "0-2,4-6", "3,7"},     {"0-7", "", "0-7"},
        {"", "0-7", ""},    {"0-1,4-7", "5", "0-1,4,6-7"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct idset a = {0}, b = {0};
        assert_int_equal(idset_parse(&a, cases[i].a, 8), 0);
        assert_int_equal(idset_parse(&b, cases[i].b, 8), 0);
        char *left = idset_minus(&a, &b);
        assert_string_equal(left, cases[i].left);
        free(left);
        idset_free(&a);
        idset_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(subtracts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
