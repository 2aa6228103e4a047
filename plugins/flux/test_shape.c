/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of a spawned job on nodes. */
#include "plugins/flux/shape.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NNODES = 2 };

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        struct rm_spawn what;
        struct shape shape;
    } rows[] = {
        {{.ntasks = 5}, {0}},
        {{.ntasks = 5, .per_node = 2, .map = RM_MAP_BLOCK}, {3, 2, false}},
        {{.ntasks = 4, .map = RM_MAP_NODES}, {2, 2, true}},
        {{.ntasks = 1, .map = RM_MAP_NODES}, {1, 1, true}},
        {{.ntasks = 4, .hosts = "a,a,b,b"}, {2, 2, false}},
        {{.ntasks = 4, .hosts = "a,b,a,b"}, {2, 2, true}},
        {{.ntasks = 3, .hosts = "a,ab,b"}, {3, 1, false}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shape shape;
        struct err err = {0};
        assert_int_equal(shape_find(&rows[i].what, NNODES, &shape, &err), 0);
        assert_int_equal(shape.nodes, rows[i].shape.nodes);
        assert_int_equal(shape.per_node, rows[i].shape.per_node);
        assert_int_equal(shape.cyclic, rows[i].shape.cyclic);
    }
}

static void test_uneven(void **state)
{
    (void)state;
    struct err err = {0};
    struct shape shape;
    const struct rm_spawn what = {.ntasks = 3, .hosts = "a,a,b"};
    assert_int_equal(shape_find(&what, NNODES, &shape, &err), -1);
    assert_non_null(strstr(err.text, "different numbers"));
}

/* What is done for each pair of nodes takes minutes. */
static void test_many(void **state)
{
    (void)state;
    enum { NODES = 200000, NAME = 12 };
    char *hosts = malloc((size_t)NODES * NAME + 1), *end = hosts;
    struct err err = {0};
    struct shape shape;
    assert_non_null(hosts);
    for (int i = 0; i < NODES; i++)
        end += sprintf(end, "%sn%d", i > 0 ? "," : "", i);
    const struct rm_spawn what = {.ntasks = NODES, .hosts = hosts};
    assert_int_equal(shape_find(&what, NNODES, &shape, &err), 0);
    assert_int_equal(shape.nodes, NODES);
    free(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_uneven),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
