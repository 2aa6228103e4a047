/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions as all frames have them: u32 count, for each u32 slot, u32 length of its data, u32
 * length of its added members; then the data of all, and then the added members of all. So the data
 * of a result are in one piece, as libpmix takes them. A contribution that brings neither is not
 * among them. */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>

void entries_put(struct wire_out *out, const struct engine_entry *entries, uint32_t n)
{
    size_t len = 4;
    for (uint32_t i = 0; i < n; i++) {
        len += ENTRY_BYTES + entries[i].len + entries[i].addedlen;
        if (entries[i].len > UINT32_MAX || entries[i].addedlen > UINT32_MAX)
            out->failed = true;
    }
    wire_reserve(out, len);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        wire_put_u32(out, entries[i].slot);
        wire_put_u32(out, (uint32_t)entries[i].len);
        wire_put_u32(out, (uint32_t)entries[i].addedlen);
    }
    for (uint32_t i = 0; i < n; i++)
        wire_put_raw(out, entries[i].data, entries[i].len);
    for (uint32_t i = 0; i < n; i++)
        wire_put_raw(out, entries[i].added, entries[i].addedlen);
}

struct engine_entry *entries_get(struct wire_in *in, uint32_t slots, uint32_t *n)
{
    uint32_t count = wire_get_count(in, ENTRY_BYTES);
    struct engine_entry *entries = calloc(count + 1ul, sizeof *entries);
    for (uint32_t i = 0; entries != NULL && i < count; i++) {
        entries[i].slot = wire_get_u32(in);
        entries[i].len = wire_get_u32(in);
        entries[i].addedlen = wire_get_u32(in);
        in->bad |= entries[i].slot >= slots;
    }
    for (uint32_t i = 0; entries != NULL && i < count; i++)
        entries[i].data = wire_get_raw(in, entries[i].len);
    for (uint32_t i = 0; entries != NULL && i < count; i++)
        entries[i].added = wire_get_raw(in, entries[i].addedlen);
    if (!wire_end(in)) {
        free(entries);
        entries = NULL;
    }
    *n = entries != NULL ? count : 0;
    return entries;
}

int entry_added(const struct engine_entry *entry, struct procset *set)
{
    struct procset added = {0};
    struct wire_in in;
    if (entry->addedlen == 0)
        return 0;
    wire_in_init(&in, entry->added, entry->addedlen);
    procset_read(&added, &in);
    int rc = wire_end(&in) ? procset_unite(set, &added) : -1;
    procset_free(&added);
    return rc;
}

void engine_acquaint(const struct engine *engine, uint32_t node, const struct procset *set)
{
    if (engine->env.acquaint != NULL && set->nparts > 0)
        engine->env.acquaint(engine->env.arg, node, set);
}

void entry_acquaint(const struct engine *engine, uint32_t node, const struct engine_entry *entry)
{
    struct procset added = {0};
    if (engine->env.acquaint != NULL && entry_added(entry, &added) == 0)
        engine_acquaint(engine, node, &added);
    procset_free(&added);
}
