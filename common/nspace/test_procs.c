/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of sets of processes as PMIx has them.
 */
#include "common/nspace/procs.h"

#include "common/util/test_cmocka.h"

#include <stdlib.h>

#include <pmix.h>

static uint32_t r0[] = {0, 2}, r1[] = {1};
static struct boot_node nodes[] = {{"c07", 2, r0, 0}, {"c08", 1, r1, 0}};
static const struct boot boot = {
    .nspace = "slurm.4711.0", .label = "4711.0", .nnodes = 2, .ntasks = 3, .nodes = nodes};

static void add(struct procset *set, const char *nspace, uint32_t first, uint32_t last)
{
    assert_int_equal(procset_add(set, nspace, first, last), 0);
    procset_canonical(set);
}

static void assert_range(const struct nspace *ns, struct procset *set, const pmix_proc_t expected[],
                         size_t n)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    procs_load_range(&info, ns, set);
    assert_true(PMIX_CHECK_KEY(&info, PMIX_EVENT_CUSTOM_RANGE));
    assert_int_equal(info.value.type, PMIX_DATA_ARRAY);
    assert_int_equal(info.value.data.darray->size, n);
    const pmix_proc_t *procs = info.value.data.darray->array;
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(procs[i].nspace, expected[i].nspace);
        assert_int_equal(procs[i].rank, expected[i].rank);
    }
    PMIX_INFO_DESTRUCT(&info);
    procset_free(set);
}

/* An event to a whole namespace is as small as one to a process; of another set, and of a namespace
 * that is not known, each process is named. */
static void a_whole_namespace_is_a_wildcard(void **state)
{
    struct nspace *ns = nspace_new(&boot);
    struct procset set = {0};
    (void)state;
    assert_non_null(ns);
    add(&set, "slurm.4711.0", 0, 2);
    add(&set, "slurm.9.0", 0, 1);
    assert_range(
        ns, &set,
        (pmix_proc_t[]){{"slurm.4711.0", PMIX_RANK_WILDCARD}, {"slurm.9.0", 0}, {"slurm.9.0", 1}},
        3);
    add(&set, "slurm.4711.0", 0, 0);
    add(&set, "slurm.4711.0", 2, 2);
    assert_range(ns, &set, (pmix_proc_t[]){{"slurm.4711.0", 0}, {"slurm.4711.0", 2}}, 2);
    nspace_free(ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_namespace_is_a_wildcard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
