/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as RELEASE and OUTCOME have them at their end, the same for all receivers. */
#include "common/tracker/rollup/rollup.h"

#include <stdlib.h>

static void put_release(const struct tracker_release *release, const void *sig, size_t siglen,
                        struct wire_out *out)
{
    static const struct procset nobody;
    const struct engine_result *result = &release->result;
    uint32_t n = release->npieced == 0 ? result->nentries : 0;
    wire_put_block(out, sig, siglen);
    wire_put_u64(out, release->generation);
    wire_put_i32(out, result->status);
    wire_put_u64(out, result->context_id);
    wire_put_u32(out, result->flags);
    wire_put_u64(out, release->op);
    procset_write(release->added != NULL ? release->added : &nobody, out);
    procset_write(result->gone != NULL ? result->gone : &nobody, out);
    wire_put_u32(out, release->npieced);
    entries_put(out, result->entries, n);
}

struct shared_bytes *release_bytes(struct tracker_release *release, const void *sig, size_t siglen)
{
    struct wire_out out = {0};
    size_t len;
    if (release->bytes == NULL && release->raw != NULL) {
        release->bytes = shared_bytes_part(release->result.whole, release->raw, release->len);
    } else if (release->bytes == NULL) {
        put_release(release, sig, siglen, &out);
        if (!out.failed) {
            void *data = wire_out_take(&out, &len);
            release->bytes = shared_bytes_take(data, len);
        }
        wire_out_free(&out);
    }
    return release->bytes;
}

void release_end(struct tracker_release *release)
{
    shared_bytes_drop(release->bytes);
    release->bytes = NULL;
    pieces_free(&release->pieces);
}

bool release_read(struct release_frame *frame, struct wire_in *in, struct shared_bytes *whole)
{
    struct tracker_release *release = &frame->release;
    struct engine_result *result = &release->result;
    release->raw = in->p;
    release->len = (size_t)(in->end - in->p);
    result->whole = whole;
    frame->sig = wire_get_block(in, &frame->siglen);
    release->generation = wire_get_u64(in);
    result->status = wire_get_i32(in);
    result->context_id = wire_get_u64(in);
    result->flags = wire_get_u32(in);
    release->op = wire_get_u64(in);
    procset_read(&frame->added, in);
    release->added = &frame->added;
    procset_read(&frame->gone, in);
    result->gone = frame->gone.nparts > 0 ? &frame->gone : NULL;
    release->npieced = wire_get_u32(in);
    result->entries = frame->entries = entries_get(in, UINT32_MAX, &result->nentries);
    bool good = frame->entries != NULL;
    for (uint32_t i = 0; good && i < result->nentries; i++) {
        const struct engine_entry *entry = &frame->entries[i];
        good = entry->len > 0 && (i == 0 || entry->slot > entry[-1].slot);
    }
    if (release->npieced > 0)
        good = good && result->status == 0 && result->nentries == 0 && release->op == 0;
    if (result->status != 0)
        return good && result->nentries == 0 && result->context_id == 0 && result->flags == 0;
    return good && release->generation != 0;
}

void release_frame_free(struct release_frame *frame)
{
    procset_free(&frame->added);
    procset_free(&frame->gone);
    procset_free(&frame->members);
    free(frame->entries);
    release_end(&frame->release);
}

bool release_members(const struct signature *sig, const struct procset *added,
                     struct procset *members)
{
    if (added->nparts == 0)
        return false;
    procset_unite(members, &sig->members);
    procset_unite(members, added);
    return true;
}
