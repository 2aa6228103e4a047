/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions as all frames have them: u32 slot, block data, block added. A contribution that
 * brings neither is not among them. */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>

void entry_put(struct wire_out *out, const struct engine_entry *entry)
{
    wire_put_u32(out, entry->slot);
    wire_put_block(out, entry->data, entry->len);
    wire_put_block(out, entry->added, entry->addedlen);
}

static bool get_entry(struct wire_in *in, uint32_t slots, struct engine_entry *entry)
{
    entry->slot = wire_get_u32(in);
    entry->data = wire_get_block(in, &entry->len);
    entry->added = wire_get_block(in, &entry->addedlen);
    if (entry->slot >= slots)
        in->bad = true;
    return !in->bad;
}

struct engine_entry *entries_get(struct wire_in *in, uint32_t count, uint32_t slots)
{
    struct engine_entry *entries = calloc(count + 1ul, sizeof *entries);
    for (uint32_t i = 0; entries != NULL && i < count; i++)
        if (!get_entry(in, slots, &entries[i]))
            break;
    if (!wire_end(in)) {
        free(entries);
        entries = NULL;
    }
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
