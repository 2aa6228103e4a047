/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of a fence whose result is large, in pieces.
 *
 * A server of the tree would send a large result to each of its children, after it has got all of
 * it. So the root's word goes down the tree as ever, without the data, and says how many
 * contributions come in pieces. The pieces go another way (tree_taker), on which no server has more
 * than three to send them to, and each is handed on as soon as it has come. Every server counts:
 * the operation ends once the root's word and all contributions that it names are here.
 *
 * A server above another in the tree has both before it. So no server can end an operation, and
 * contribute to the next, while its parent still waits.
 *
 * When the server is lost that should hand on the rest, the operation fails here, as it does when
 * the server is lost that should bring the root's word: results of fences are not kept. Servers
 * that wait for our pieces are told. A server that has given up hands pieces on nevertheless.
 */
#include "common/tracker/rollup/rollup.h"

#include "common/util/log.h"

#include <stdlib.h>
#include <string.h>

bool pieces_are_due(const struct engine *engine, const struct tracker *t,
                    const struct engine_entry *entries, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += entries[i].len;
    return engine->env.large > 0 && bytes >= engine->env.large && t->tree.n > engine->env.few &&
           !coll_traits(t->parts.kind)->is_recoverable;
}

bool pieces_add(struct pieces *pieces, struct shared_bytes *bytes, const struct piece *piece)
{
    if (pieces->n == pieces->cap) {
        uint32_t cap = pieces->cap > 0 ? 2 * pieces->cap : 16;
        struct shared_bytes **v = realloc(pieces->v, cap * sizeof(struct shared_bytes *));
        if (v == NULL)
            return false;
        pieces->v = v;
        pieces->cap = cap;
    }
    pieces->v[pieces->n++] = shared_bytes_hold(bytes);
    pieces->nentries += piece->n;
    pieces->last = piece->entries[piece->n - 1].slot;
    return true;
}

/* Writes one piece. */
static struct shared_bytes *write_piece(const struct tracker *t, uint64_t generation,
                                        const struct piece *piece)
{
    struct wire_out out = {0};
    size_t len;
    wire_put_block(&out, t->sig, t->siglen);
    wire_put_u64(&out, generation);
    entries_put(&out, piece->entries, piece->n);
    bool good = !out.failed;
    void *data = wire_out_take(&out, &len);
    if (good)
        return shared_bytes_take(data, len);
    free(data);
    return NULL;
}

bool pieces_cut(const struct engine *engine, const struct tracker *t,
                struct tracker_release *release)
{
    const struct engine_result *result = &release->result;
    bool good = true;
    struct piece piece = {0};
    for (uint32_t at = 0; at < result->nentries && good; at += piece.n) {
        size_t size = 0;
        piece.entries = (struct engine_entry *)result->entries + at;
        piece.n = 0;
        while (at + piece.n < result->nentries && size < engine->env.piece)
            size += ENTRY_BYTES + piece.entries[piece.n++].len;
        struct shared_bytes *bytes = write_piece(t, release->generation, &piece);
        good = bytes != NULL && pieces_add(&release->pieces, bytes, &piece);
        shared_bytes_drop(bytes);
    }
    release->npieced = result->nentries;
    log_info("tracker: the data of a fence of %u servers go in %u pieces", t->tree.n,
             release->pieces.n);
    return good;
}

bool piece_read(const void *body, size_t len, struct piece *piece)
{
    struct wire_in in;
    wire_in_init(&in, body, len);
    piece->sig = wire_get_block(&in, &piece->siglen);
    piece->generation = wire_get_u64(&in);
    piece->entries = entries_get(&in, UINT32_MAX, &piece->n);
    bool good = piece->entries != NULL && piece->n > 0 && piece->generation != 0;
    for (uint32_t i = 0; good && i < piece->n; i++) {
        const struct engine_entry *entry = &piece->entries[i];
        good = entry->len > 0 && entry->addedlen == 0 && (i == 0 || entry->slot > entry[-1].slot);
    }
    return good;
}

struct engine_entry *pieces_entries(const struct pieces *pieces)
{
    struct engine_entry *all = calloc(pieces->nentries + 1ul, sizeof *all);
    uint32_t n = 0;
    bool good = all != NULL;
    for (uint32_t i = 0; i < pieces->n && good; i++) {
        struct piece piece = {0};
        good = piece_read(pieces->v[i]->data, pieces->v[i]->len, &piece);
        if (good)
            memcpy(all + n, piece.entries, piece.n * sizeof *all);
        n += piece.n;
        free(piece.entries);
    }
    if (good)
        return all;
    free(all);
    return NULL;
}

void piece_pass(struct engine *engine, const struct tracker *t, struct shared_bytes *bytes)
{
    bytes->spread = tree_taker(&t->tree, t->self, 1) != TREE_NONE;
    for (uint32_t i = 0; i < TREE_TAKERS; i++) {
        uint32_t slot = tree_taker(&t->tree, t->self, i);
        struct wire_out out = {0};
        if (slot == TREE_NONE || tracker_slot_lost(engine, t, slot))
            continue;
        wire_put_u8(&out, FRAME_PIECE);
        rollup_send(engine, t, slot, &out, bytes);
    }
}

/* The first frame between two servers has them connect. Along the tree it has been sent when a
 * result comes; servers with one parent may not have met. A frame without a body asks for nothing.
 */
void pieces_expect(struct engine *engine, const struct tracker *t)
{
    uint32_t giver = tree_giver(&t->tree, t->self);
    bool large =
        engine->env.large > 0 && t->call != NULL && t->call->len >= engine->env.large / t->tree.n;
    struct wire_out out = {0};
    if (!large || t->tree.n <= engine->env.few || coll_traits(t->parts.kind)->is_recoverable ||
        giver == t->parent || tracker_slot_lost(engine, t, giver) ||
        ranges_have(&engine->met, tracker_node(t, giver)))
        return;
    ranges_put(&engine->met, tracker_node(t, giver));
    wire_put_u8(&out, FRAME_WANTED);
    rollup_send(engine, t, giver, &out, NULL);
}
