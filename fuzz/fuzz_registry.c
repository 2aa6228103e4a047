/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Another server's groups and sets, the answer to a query: what was merged can be written, and
 * merged again as the same.
 */
#include "common/nspace/registry.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct registry *first = registry_new(), *second = registry_new();
    struct wire_out a = {0}, b = {0};
    registry_merge(first, data, len);
    registry_write(first, &a);
    FUZZ_CHECK(registry_merge(second, a.data, a.len) == 0);
    registry_write(second, &b);
    FUZZ_CHECK(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    registry_merge(first, data, len); /* adds nothing */
    FUZZ_CHECK(first->n == second->n);
    while (first->n > 0) {
        uint32_t last = second->n - 1;
        const struct registry_entry *entry = &second->entries[last];
        registry_remove(first, entry->kind, entry->id, &entry->members);
        FUZZ_CHECK(first->n == last);
        registry_remove(second, entry->kind, entry->id, &entry->members);
        FUZZ_CHECK(second->n == last);
    }
    registry_free(first);
    registry_free(second);
    wire_out_free(&a);
    wire_out_free(&b);
    return 0;
}

/* One entry, whose name is as long as it may be, or a byte longer. */
static void seed_long_name(const struct procset *members, size_t len)
{
    struct wire_out out = {0};
    char name[PROCSET_NAME_MAX + 1];
    memset(name, 'x', sizeof name);
    wire_put_u32(&out, 1);
    wire_put_u8(&out, REGISTRY_PSET);
    wire_put_block(&out, name, len);
    procset_write(members, &out);
    fuzz_seed(out.data, out.len);
    wire_out_free(&out);
}

void fuzz_seeds(void)
{
    struct registry *registry = registry_new();
    struct procset members = {0};
    struct wire_out out = {0};
    procset_add(&members, "job", 0, 3);
    procset_canonical(&members);
    registry_add(registry, REGISTRY_GROUP, "ocean", &members);
    registry_add(registry, REGISTRY_PSET, "mpi://world", &members);
    procset_add(&members, "job", 7, 9);
    procset_canonical(&members);
    registry_add(registry, REGISTRY_GROUP, "ocean", &members);
    registry_write(registry, &out);
    fuzz_seed(out.data, out.len);
    seed_long_name(&members, PROCSET_NAME_MAX);
    seed_long_name(&members, PROCSET_NAME_MAX + 1);
    wire_out_free(&out);
    procset_free(&members);
    registry_free(registry);
}
