/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the registry of groups and process sets.
 */
#include "common/nspace/registry.h"

#include "common/util/test_cmocka.h"

#include <string.h>

static struct procset set_of(uint32_t first, uint32_t last)
{
    struct procset set = {0};
    assert_int_equal(procset_add(&set, "job", first, last), 0);
    procset_canonical(&set);
    return set;
}

static void add(struct registry *registry, enum registry_kind kind, const char *id, uint32_t first,
                uint32_t last)
{
    struct procset set = set_of(first, last);
    registry_add(registry, kind, id, &set);
    procset_free(&set); /* it was copied */
}

static void drop(struct registry *registry, enum registry_kind kind, const char *id, uint32_t first,
                 uint32_t last)
{
    struct procset set = set_of(first, last);
    registry_remove(registry, kind, id, &set);
    procset_free(&set);
}

static bool has(const struct registry *registry, enum registry_kind kind, const char *id,
                uint64_t size)
{
    for (uint32_t i = 0; i < registry->n; i++)
        if (registry->entries[i].kind == kind && strcmp(registry->entries[i].id, id) == 0 &&
            procset_size(&registry->entries[i].members) == size)
            return true;
    return false;
}

static void entries_are_told_apart(void **state)
{
    struct registry *registry = registry_new();
    (void)state;
    add(registry, REGISTRY_GROUP, "a", 0, 3);
    add(registry, REGISTRY_GROUP, "a", 0, 3); /* there already */
    assert_int_equal(registry->n, 1);
    add(registry, REGISTRY_GROUP, "a", 4, 8); /* one id, other members */
    add(registry, REGISTRY_PSET, "a", 0, 3);
    add(registry, REGISTRY_GROUP, "b", 0, 3);
    assert_int_equal(registry->n, 4);
    drop(registry, REGISTRY_GROUP, "a", 0, 4); /* not there */
    assert_int_equal(registry->n, 4);
    drop(registry, REGISTRY_GROUP, "a", 0, 3);
    assert_int_equal(registry->n, 3);
    assert_true(has(registry, REGISTRY_GROUP, "a", 5));
    assert_true(has(registry, REGISTRY_PSET, "a", 4));
    assert_true(has(registry, REGISTRY_GROUP, "b", 4));
    registry_free(registry);
}

/* Once of each process and id, also when the group has ended; a process of a job's next run is
 * another one. */
static void who_has_gone_is_told_once(void **state)
{
    struct registry *registry = registry_new();
    (void)state;
    add(registry, REGISTRY_GROUP, "a", 0, 3);
    assert_true(registry_tell(registry, "a", "ns", 2));
    assert_false(registry_tell(registry, "a", "ns", 2));
    assert_true(registry_tell(registry, "a", "ns", 1));
    assert_true(registry_tell(registry, "a", "other", 2));
    assert_true(registry_tell(registry, "b", "ns", 2)); /* a group that is not there yet */
    drop(registry, REGISTRY_GROUP, "a", 0, 3);
    assert_false(registry_tell(registry, "a", "ns", 1));
    assert_false(registry_tell(registry, "b", "ns", 2));
    registry_forget(registry, "ns");
    assert_true(registry_tell(registry, "a", "ns", 1));
    assert_true(registry_tell(registry, "b", "ns", 2));
    assert_false(registry_tell(registry, "a", "other", 2));
    registry_free(registry);
}

static void growing_and_emptying(void **state)
{
    struct registry *registry = registry_new();
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        add(registry, REGISTRY_GROUP, "g", i, 2 * i);
    assert_int_equal(registry->n, 100);
    for (uint32_t i = 0; i < 100; i++)
        drop(registry, REGISTRY_GROUP, "g", i, 2 * i);
    assert_int_equal(registry->n, 0);
    add(registry, REGISTRY_GROUP, "again", 0, 0);
    assert_int_equal(registry->n, 1);
    registry_free(registry);
}

static void an_id_that_is_too_long(void **state)
{
    struct registry *registry = registry_new();
    char id[PROCSET_NAME_MAX + 2];
    (void)state;
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    add(registry, REGISTRY_GROUP, id, 0, 0);
    assert_int_equal(registry->n, 0);
    add(registry, REGISTRY_GROUP, id + 1, 0, 0);
    assert_int_equal(registry->n, 1);
    registry_free(registry);
}

static void assert_list(const struct registry_entry *e, const uint32_t *ranks, uint32_t n)
{
    struct proclist list = {0};
    const char *nspace;
    uint32_t rank;
    registry_list(e, &list);
    assert_int_equal(proclist_size(&list), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(proclist_at(&list, i, &nspace, &rank));
        assert_int_equal(rank, ranks[i]);
    }
    proclist_free(&list);
}

static void assert_means(const struct registry *registry, uint32_t rank, bool all, int expected,
                         uint32_t first)
{
    struct procset set = {0};
    int rc;
    assert_true(registry_expand(registry, &set, "a", rank, all, &rc));
    assert_int_equal(rc, expected);
    assert_int_equal(procset_size(&set), expected != 0 ? 0 : all ? 4 : 1);
    assert_true(expected != 0 || procset_has(&set, "job", first));
    procset_free(&set);
}

/* Of a group by its ranks; in queries, and where a process is named by the group. */
static void members_have_an_order(void **state)
{
    static const uint32_t given[] = {2, 0, 3, 1}, sorted[] = {0, 1, 2, 3}, without[] = {2, 0, 1};
    struct registry *registry = registry_new(), *other = registry_new();
    struct proclist order = {0};
    struct procset set = set_of(0, 3), fewer = set_of(0, 2), none = {0};
    struct wire_out out = {0};
    int rc;
    (void)state;
    add(registry, REGISTRY_GROUP, "a", 0, 3);
    assert_list(&registry->entries[0], sorted, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(proclist_add(&order, "job", given[i], given[i]), 0);
    registry_order(registry, "a", &set, &order);
    assert_list(&registry->entries[0], given, 4);
    assert_means(registry, 0, false, 0, 2);
    assert_means(registry, 3, false, 0, 1);
    assert_means(registry, 4, false, -1, 0);
    assert_means(registry, 9, true, 0, 3);
    assert_false(registry_expand(registry, &none, "b", 0, true, &rc));
    registry_write(registry, &out);
    assert_int_equal(registry_merge(other, out.data, out.len), 0);
    assert_list(&other->entries[0], given, 4);
    out.data[out.len - 1] ^= 1; /* the last rank: one is there twice now */
    assert_int_equal(registry_merge(other, out.data, out.len), -1);
    add(registry, REGISTRY_GROUP, "c", 0, 2); /* the order names one that is no member */
    registry_order(registry, "c", &fewer, &order);
    assert_list(&registry->entries[1], without, 3);
    wire_out_free(&out);
    procset_free(&set);
    procset_free(&fewer);
    proclist_free(&order);
    registry_free(registry);
    registry_free(other);
}

static void merging(void **state)
{
    struct registry *a = registry_new(), *b = registry_new();
    struct wire_out out = {0};
    (void)state;
    add(a, REGISTRY_GROUP, "both", 0, 3);
    add(a, REGISTRY_PSET, "a's", 1, 1);
    add(b, REGISTRY_GROUP, "both", 0, 3);
    add(b, REGISTRY_GROUP, "b's", 7, 9);
    registry_write(b, &out);
    assert_int_equal(registry_merge(a, out.data, out.len), 0);
    assert_int_equal(registry_merge(a, out.data, out.len), 0);
    assert_int_equal(a->n, 3);
    assert_true(has(a, REGISTRY_GROUP, "both", 4));
    assert_true(has(a, REGISTRY_GROUP, "b's", 3));
    wire_out_free(&out);
    registry_free(a);
    registry_free(b);
}

static void malformed_bytes(void **state)
{
    struct registry *a = registry_new(), *b = registry_new();
    struct wire_out out = {0};
    (void)state;
    add(b, REGISTRY_GROUP, "x", 0, 3);
    add(b, REGISTRY_PSET, "y", 0, 3);
    registry_write(b, &out);
    for (size_t len = 0; len < out.len; len++)
        assert_int_equal(registry_merge(a, out.data, len), -1);
    wire_put_u8(&out, 0);
    assert_int_equal(registry_merge(a, out.data, out.len), -1);
    out.data[4] = 77; /* a kind that this version does not know is skipped */
    struct registry *c = registry_new();
    assert_int_equal(registry_merge(c, out.data, out.len - 1), 0);
    assert_int_equal(c->n, 1);
    wire_out_free(&out);
    registry_free(a);
    registry_free(b);
    registry_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_told_apart), cmocka_unit_test(who_has_gone_is_told_once),
        cmocka_unit_test(growing_and_emptying),   cmocka_unit_test(an_id_that_is_too_long),
        cmocka_unit_test(members_have_an_order),  cmocka_unit_test(merging),
        cmocka_unit_test(malformed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
