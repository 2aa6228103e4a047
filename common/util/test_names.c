/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of names that are added, looked up and removed.
 */
#include "common/util/names.h"

#include "common/util/test_cmocka.h"

#include <stddef.h>
#include <stdint.h>

static void what_was_added_is_there(void **state)
{
    (void)state;
    struct name_set names;
    names_init(&names);
    assert_false(names_have(&names, "slurm.1.0"));
    assert_true(names_add(&names, "slurm.1.0"));
    assert_true(names_add(&names, "slurm.2.0"));
    assert_true(names_add(&names, "slurm.1.0"));
    assert_true(names_have(&names, "slurm.1.0"));
    assert_false(names_have(&names, "slurm.1"));
    names_remove(&names, "slurm.1.0");
    names_remove(&names, "slurm.3.0");
    assert_false(names_have(&names, "slurm.1.0"));
    assert_true(names_have(&names, "slurm.2.0"));
    names_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_added_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
