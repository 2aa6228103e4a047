/* SPDX-License-Identifier: BSD-3-Clause */
/* What a success brings: the contributions of all, in the form in which they go down. */
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
    const struct shared_bytes *bytes = release_bytes(release, t->sig, t->siglen);
    free(entries);
    frame->entries = NULL;
    bool good = bytes != NULL && release_read(frame, bytes->data, bytes->len);
    result->entries = frame->entries;
    return good;
}
