/* SPDX-License-Identifier: BSD-3-Clause */
/* A Flux that is too old is refused, with a sentence. */
#include "plugins/flux/release.h"

#include "common/util/test_cmocka.h"
#include "shims/flux/flux_abi.h"

#include <stddef.h>
#include <string.h>

static int release[3];

/* Flux's. */
int flux_core_version(int *major, int *minor, int *patch)
{
    *major = release[0];
    *minor = release[1];
    *patch = release[2];
    return 0;
}

static int check(int major, int minor, int patch, struct err *err)
{
    memset(err, 0, sizeof *err);
    release[0] = major;
    release[1] = minor;
    release[2] = patch;
    return release_check(err);
}

static void bounds(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(check(0, 83, 0, &err), 0);
    assert_int_equal(check(0, 88, 1, &err), 0);
    assert_int_equal(check(1, 0, 0, &err), 0);
    assert_int_equal(check(0, 79, 3, &err), -1);
    assert_int_equal(check(0, 82, 9, &err), -1);
    assert_string_equal(err.text,
                        "this is Flux 0.82.9, and muster needs 0.83 or newer: upgrade flux-core");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
