/* SPDX-License-Identifier: BSD-3-Clause */
/* What a success brings: the contributions of all, in the form in which they go down and in which
 * libpmix takes them. So the root copies each once, from where it came to where it is sent from. */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>
#include <string.h>

uint64_t engine_context_id(struct engine *engine, uint32_t flags)
{
    if ((flags & ENGINE_WANT_CONTEXT_ID) == 0)
        return 0;
    engine->next_id += engine->env.id_step;
    return engine->next_id;
}

/* The contributions of all that have data; NULL when out of memory. */
static struct engine_entry *all_entries(const struct tracker *t, const struct rollup_more *more,
                                        uint32_t *n)
{
    uint32_t have;
    struct engine_entry *entries = rollup_entries(t, more->nentries, &have);
    *n = 0;
    if (entries == NULL)
        return NULL;
    for (uint32_t i = 0; i < have; i++) {
        entries[i].added = NULL; /* the release names them all */
        entries[i].addedlen = 0;
        /* A server that lies may have said one twice. */
        if (entries[i].len > 0 && (*n == 0 || entries[*n - 1].slot < entries[i].slot))
            entries[(*n)++] = entries[i];
    }
    if (more->nentries > 0)
        memcpy(entries + *n, more->entries, more->nentries * sizeof *entries);
    *n += more->nentries;
    return entries;
}

bool result_write(struct engine *engine, const struct tracker *t, const struct rollup_more *more,
                  struct tracker_release *release, struct release_frame *frame)
{
    uint32_t flags = rollup_flags(t) | more->flags, n;
    struct engine_entry *entries = more->failed ? NULL : all_entries(t, more, &n);
    struct engine_result *result = &release->result;
    if (entries == NULL)
        return false;
    *result = (struct engine_result){.flags = flags, .nentries = n, .entries = entries};
    result->gone = t->call != NULL ? t->call->gone : NULL;
    result->context_id = engine_context_id(engine, flags);
    frame->entries = entries;
    if (t->tree.n < 2 && more->assembly == NULL)
        return true;
    if (pieces_are_due(engine, t, entries, n)) {
        bool cut = pieces_cut(engine, t, release);
        free(entries);
        frame->entries = pieces_entries(&release->pieces);
        result->entries = frame->entries;
        return cut && frame->entries != NULL;
    }
    struct shared_bytes *bytes = release_bytes(release, t->sig, t->siglen);
    struct wire_in in;
    free(entries);
    frame->entries = NULL;
    if (bytes == NULL)
        return false;
    wire_in_init(&in, bytes->data, bytes->len);
    bool good = release_read(frame, &in, bytes);
    result->entries = frame->entries;
    result->whole = bytes;
    return good;
}

struct shared_bytes *engine_result_data(const struct engine_result *result)
{
    const struct engine_entry *entries = result->entries;
    bool apart = false;
    size_t len = 0;
    for (uint32_t i = 0; i < result->nentries; i++) {
        apart |= (const char *)entries[i].data != (const char *)entries[0].data + len;
        len += entries[i].len;
    }
    if (!apart)
        return shared_bytes_part(result->whole, len > 0 ? entries[0].data : NULL, len);
    struct wire_out all = {0};
    wire_reserve(&all, len);
    for (uint32_t i = 0; i < result->nentries; i++)
        wire_put_raw(&all, entries[i].data, entries[i].len);
    if (!all.failed)
        return shared_bytes_take(wire_out_take(&all, &len), len);
    wire_out_free(&all);
    return NULL;
}
