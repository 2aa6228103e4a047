/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the layout of a step as text.
 */
#include "common/nspace/maps.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 3, TASKS = 64 };

/* Places each rank on the node that where says, a digit each, and compares the map. */
static void check_anl(const char *where, const char *expected)
{
    uint32_t ranks[NODES][TASKS];
    struct boot_node nodes[NODES] = {
        {"c01", 0, ranks[0], 0}, {"c02", 0, ranks[1], 0}, {"c03", 0, ranks[2], 0}};
    struct boot boot = {.nnodes = NODES, .nodes = nodes, .ntasks = (uint32_t)strlen(where)};
    for (uint32_t rank = 0; rank < boot.ntasks; rank++) {
        struct boot_node *node = &nodes[where[rank] - '0'];
        node->ranks[node->ntasks++] = rank;
    }
    struct nspace *ns = nspace_new(&boot);
    assert_non_null(ns);
    char *map = map_anl(ns);
    assert_string_equal(map, expected);
    free(map);
    nspace_free(ns);
}

static void anl_of_block_layouts(void **state)
{
    (void)state;
    check_anl("0", "(vector,(0,1,1))");
    check_anl("0000", "(vector,(0,1,4))");
    check_anl("001122", "(vector,(0,3,2))");
    check_anl("0001122", "(vector,(0,1,3),(1,2,2))");
}

static void anl_of_cyclic_and_plane_layouts(void **state)
{
    (void)state;
    check_anl("012012", "(vector,(0,3,1))");
    check_anl("0120120", "(vector,(0,3,1),(0,3,1),(0,1,1))");
    check_anl("001122001122", "(vector,(0,3,2))");
    check_anl("001122001", "(vector,(0,3,2),(0,1,2),(1,1,1))");
}

static void anl_of_arbitrary_layouts(void **state)
{
    (void)state;
    check_anl("20110", "(vector,(2,1,1),(0,1,1),(1,1,2),(0,1,1))");
    check_anl("210", "(vector,(2,1,1),(1,1,1),(0,1,1))");
    check_anl("0200", "(vector,(0,1,1),(2,1,1),(0,1,2))");
}

static void ranks_and_nodes(void **state)
{
    uint32_t r0[] = {0, 3}, r1[] = {1, 2}, apps[] = {1, 2, 1};
    struct boot_node nodes[] = {{"c01", 2, r0, 0}, {"c02", 2, r1, 0}};
    struct boot boot = {.nnodes = 2, .nodes = nodes, .ntasks = 4, .napps = 3, .apps = apps};
    char *ranks = map_ranks(&nodes[0]), *names = map_nodes(&boot, MAP_ALL_APPS),
         *second = map_nodes(&boot, 1);
    (void)state;
    assert_string_equal(ranks, "0,3");
    assert_string_equal(names, "c01,c02");
    assert_string_equal(second, "c02");
    free(ranks);
    free(names);
    free(second);
}

static void check_cpus(const char *expected, int n, const int *cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < n; i++)
        CPU_SET(cpus[i], &set);
    char *list = map_cpus(&set, sizeof set);
    assert_string_equal(list, expected);
    free(list);
}

static void processors(void **state)
{
    (void)state;
    check_cpus("", 0, NULL);
    check_cpus("0", 1, (int[]){0});
    check_cpus("0-2,4,6-7", 6, (int[]){0, 1, 2, 4, 6, 7});
    check_cpus("5,1022-1023", 3, (int[]){5, 1022, 1023});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anl_of_block_layouts),
        cmocka_unit_test(anl_of_cyclic_and_plane_layouts),
        cmocka_unit_test(anl_of_arbitrary_layouts),
        cmocka_unit_test(ranks_and_nodes),
        cmocka_unit_test(processors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
