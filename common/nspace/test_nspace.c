/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the step's namespace: where ranks are, and how those that are missing are named.
 */
#include "common/nspace/nspace.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Three nodes with tasks, one without; the ranks are placed cyclically. */
static uint32_t r0[] = {0, 3, 6}, r1[] = {1, 4}, r3[] = {2, 5};
static struct boot_node nodes[] = {
    {"c07", 3, r0, 0}, {"c08", 2, r1, 0}, {"c09", 0, NULL, 0}, {"c10", 2, r3, 0}};
static const struct boot boot = {
    .nspace = "slurm.4711.0", .label = "4711.0", .nnodes = 4, .ntasks = 7, .nodes = nodes};

static struct nspace *ns;

static int open_nspace(void **state)
{
    (void)state;
    ns = nspace_new(&boot);
    return ns == NULL;
}

static int close_nspace(void **state)
{
    (void)state;
    nspace_free(ns);
    return 0;
}

static struct signature fence_of(const char *name, uint32_t first, uint32_t last)
{
    struct signature sig = {.kind = COLL_FENCE};
    procset_add(&sig.members, name, first, last);
    procset_canonical(&sig.members);
    return sig;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Context ids of steps that may be alive together or follow each other: steps of one job, of jobs
 * one after another, and runs of a job that is requeued. */
static void far_apart(void **state)
{
    enum { JOBS = 40, STEPS = 50, RUNS = 10, ALL = JOBS * STEPS * RUNS };
    static uint64_t ids[ALL];
    uint32_t n = 0;
    (void)state;
    for (uint32_t job = 0; job < JOBS; job++)
        for (uint32_t step = 0; step < STEPS; step++)
            for (uint32_t run = 0; run < RUNS; run++) {
                char name[32];
                snprintf(name, sizeof name, "slurm.%u.%u", 99980 + job, step);
                ids[n++] = nspace_ids(name, 1795530000 + run);
            }
    assert_int_equal(ids[0], nspace_ids("slurm.99980.0", 1795530000));
    qsort(ids, ALL, sizeof *ids, compare);
    assert_int_equal(ids[0] >> 62, 1);
    assert_int_equal(ids[ALL - 1] >> 62, 1);
    for (uint32_t i = 1; i < ALL; i++)
        assert_true(ids[i] - ids[i - 1] > UINT64_C(1) << 26);
}

static void the_node_of_a_rank(void **state)
{
    static const uint32_t where[] = {0, 1, 3, 0, 1, 3, 0}, local[] = {0, 0, 0, 1, 1, 1, 2};
    uint32_t node = 99;
    (void)state;
    for (uint32_t rank = 0; rank < 7; rank++) {
        assert_int_equal(nspace_node(ns, "slurm.4711.0", rank, &node), 0);
        assert_int_equal(node, where[rank]);
        assert_int_equal(ns->local_of[rank], local[rank]);
    }
    assert_int_equal(nspace_node(ns, "slurm.4711.0", 7, &node), -1);
    assert_int_equal(nspace_node(ns, "slurm.4711.0", 0xffffffff, &node), -1);
    assert_int_equal(nspace_node(ns, "slurm.4711", 0, &node), -1);
    assert_int_equal(nspace_node(ns, "", 0, &node), -1);
}

/* The servers of ranks first..last of name, as digits; "?" when they are unknown. */
static void assert_servers(const char *name, uint32_t first, uint32_t last, const char *expected)
{
    struct signature sig = fence_of(name, first, last);
    struct places found = {0};
    char text[8] = "?";
    if (nspace_servers(ns, &sig, &found) == 0) {
        assert_true(found.n < sizeof text);
        for (uint32_t i = 0; i < found.n; i++)
            text[i] = (char)('0' + places_node(&found, i));
        text[found.n] = '\0';
    }
    assert_string_equal(text, expected);
    places_free(&found);
    signature_free(&sig);
}

static void the_servers_of_a_signature(void **state)
{
    (void)state;
    assert_servers("slurm.4711.0", 0, 6, "013"); /* ascending, each once, none without tasks */
    assert_servers("slurm.4711.0", 3, 3, "0");
    assert_servers("slurm.4711.0", 4, 5, "13");
    assert_servers("slurm.4711.0", 0, 7, "?");
    assert_servers("slurm.4711.0", 0, 0xffffffff, "?");
    assert_servers("slurm.4711.0", 0xffffffff, 0xffffffff, "?");
    assert_servers("slurm.4711.1", 0, 0, "?");
}

static void a_part_that_is_unknown(void **state)
{
    struct signature sig = fence_of("slurm.4711.0", 0, 6);
    struct places found = {0};
    (void)state;
    procset_add(&sig.members, "zzz", 0, 0);
    procset_canonical(&sig.members);
    assert_int_equal(nspace_servers(ns, &sig, &found), -1);
    places_free(&found);
    signature_free(&sig);
}

static void who_is_missing(void **state)
{
    const uint32_t all[] = {0, 1, 3}, one[] = {3}, beyond[] = {9};
    struct signature sig = fence_of("slurm.4711.0", 0, 5);
    char buf[200];
    (void)state;
    nspace_ranks(ns, &sig, all, 3, true, buf, sizeof buf);
    /* rank 6 is on c07 and takes no part */
    assert_string_equal(buf, "one or more of ranks 0,3 on c07, one or more of ranks 1,4 on c08, "
                             "one or more of ranks 2,5 on c10");
    nspace_ranks(ns, &sig, one, 1, false, buf, sizeof buf);
    assert_string_equal(buf, "ranks 2,5 on c10");
    nspace_ranks(ns, &sig, one, 0, true, buf, sizeof buf);
    assert_string_equal(buf, "");
    nspace_ranks(ns, &sig, beyond, 1, true, buf, sizeof buf);
    assert_string_equal(buf, "");
    signature_free(&sig);
}

/* In a buffer of any size: what fits, "..." where it was cut, never a byte too many. */
static void who_is_missing_in_little_room(void **state)
{
    const uint32_t all[] = {0, 1, 3};
    struct signature sig = fence_of("slurm.4711.0", 0, 6);
    char whole[200];
    (void)state;
    nspace_ranks(ns, &sig, all, 3, true, whole, sizeof whole);
    nspace_ranks(ns, &sig, all, 3, true, NULL, 0);
    for (size_t cap = 1; cap <= strlen(whole) + 6; cap++) {
        char *buf = malloc(cap);
        assert_non_null(buf);
        nspace_ranks(ns, &sig, all, 3, true, buf, cap);
        size_t len = strlen(buf);
        assert_true(len < cap);
        if (strcmp(buf, whole) != 0 && cap > 4)
            assert_non_null(strstr(buf, "..."));
        free(buf);
    }
    signature_free(&sig);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_nspace, close_nspace)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_apart),  TEST(the_node_of_a_rank), TEST(the_servers_of_a_signature),
        TEST(a_part_that_is_unknown), TEST(who_is_missing),     TEST(who_is_missing_in_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
