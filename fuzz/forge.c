/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Writes a frame of any type from the input's bytes: each field has a few values, among them those
 * that fit to a running operation.
 */
#include "fuzz/forge.h"

#include "ci/loopback/loopback.h"
#include "common/tracker/values/procset.h"
#include "common/transport/frame.h"

enum { ENTRIES_MAX = 5, FIRST_RANK_MAX = 4, RANKS_MAX = 3 };

static int32_t status(uint8_t which)
{
    static const int32_t all[] = {0, LOOPBACK_LOST, LOOPBACK_TIMEOUT, INT32_MIN};
    return all[which & 3];
}

static void put_set(struct fuzz_bytes *in, struct wire_out *out)
{
    struct procset set = {0};
    uint8_t what = fuzz_byte(in);
    uint32_t first = what % FIRST_RANK_MAX, n = (what >> 2) % RANKS_MAX;
    if (n > 0)
        procset_add(&set, what & 0x80 ? "nobody" : "job", first, first + n - 1);
    procset_canonical(&set);
    procset_write(&set, out);
    procset_free(&set);
}

/* A set in a block of its own, as added members are; or nobody at all. */
static void put_added(struct fuzz_bytes *in, bool any, struct wire_out *out)
{
    struct wire_out set = {0};
    if (any)
        put_set(in, &set);
    wire_put_block(out, set.data, set.len);
    wire_out_free(&set);
}

static void put_entries(struct fuzz_bytes *in, struct wire_out *out)
{
    uint32_t n = fuzz_below(in, ENTRIES_MAX + 1);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t what = fuzz_byte(in);
        wire_put_u32(out, what & 7);
        wire_put_block(out, "forged", what >> 6);
        put_added(in, what & 0x20, out);
    }
}

/* What all servers say of themselves, and of how long they wait. */
static void put_side(uint8_t what, bool arity, struct wire_out *out)
{
    wire_put_u32(out, what & 1 ? FORGE_LIBRARY + 1 : FORGE_LIBRARY);
    if (arity)
        wire_put_u32(out, what & 0x80 ? 1 : 3);
    wire_put_u32(out, what >> 4 & 7);
    wire_put_u64(out, what & 2 ? UINT64_MAX : 100u * (what & 0xc));
}

/* Slots that are missing, with their number before them. */
static void put_ranges(uint8_t what, struct wire_out *out)
{
    uint32_t n = what & 3;
    wire_put_u32(out, what >> 2 & 7);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        wire_put_u32(out, 2 * i);
        wire_put_u32(out, what & 0x80 ? i : 2 * i);
    }
}

static void put_contrib(struct fuzz_bytes *in, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_u64(out, fuzz_byte(in)); /* generation that is known */
    wire_put_u64(out, what >> 4);     /* and the highest that was heard of */
    wire_put_u8(out, what >> 2 & 1);  /* a later try */
    wire_put_u64(out, what >> 5);
    wire_put_u64(out, fuzz_byte(in)); /* number of the call */
    put_side(fuzz_byte(in), true, out);
    put_set(in, out);
    wire_put_i32(out, status(what));
    wire_put_u32(out, what >> 3 & 1); /* flags */
    wire_put_u32(out, what & 3);      /* who was last */
    wire_put_u32(out, what >> 4);     /* by how much */
    put_ranges(fuzz_byte(in), out);
    put_entries(in, out);
}

/* What RELEASE and OUTCOME have at their end. */
static void put_result(struct fuzz_bytes *in, const struct wire_out *sig, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_block(out, sig->data, sig->len);
    wire_put_u64(out, fuzz_byte(in)); /* generation */
    wire_put_i32(out, status(what));
    wire_put_u64(out, what >> 2);
    wire_put_u32(out, what >> 3 & 1); /* flags */
    wire_put_u64(out, what >> 4);     /* assembly */
    put_set(in, out);
    put_set(in, out);
    wire_put_u32(out, what & 0x80 ? 2 : 0); /* that come in pieces */
    put_entries(in, out);
}

static void put_lead(const struct forge *forge, struct fuzz_bytes *in, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_str(out, forge->id);
    wire_put_u64(out, fuzz_byte(in)); /* number of the call */
    wire_put_u32(out, FORGE_LIBRARY);
    wire_put_u32(out, what & 3); /* leaders */
    wire_put_u32(out, what >> 4 & 7);
    wire_put_u64(out, 100u * (what & 0xc));
    put_set(in, out);
    wire_put_i32(out, status(what >> 6));
    wire_put_u8(out, what & 2);  /* announced before */
    wire_put_u32(out, what & 1); /* flags */
    put_entries(in, out);
}

static void put_claim(const struct forge *forge, struct fuzz_bytes *in, const struct wire_out *sig,
                      struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_u64(out, what & 7); /* assembly */
    wire_put_str(out, forge->id);
    put_set(in, out);
    wire_put_block(out, sig->data, what & 8 ? 0 : sig->len);
}

static void put_joined(struct fuzz_bytes *in, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_u64(out, what & 7); /* assembly */
    put_side(fuzz_byte(in), false, out);
    wire_put_i32(out, status(what >> 4));
    wire_put_u32(out, what >> 6); /* flags */
    put_set(in, out);
    put_entries(in, out);
}

static void put_outcome(struct fuzz_bytes *in, const struct wire_out *sig, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    wire_put_u32(out, what & 1);
    if (what & 1)
        wire_put_u64(out, what >> 1 & 7);
    put_result(in, sig, out);
}

static void put_doubt(struct fuzz_bytes *in, struct wire_out *out)
{
    uint8_t what = fuzz_byte(in);
    uint32_t n = what >> 2 & 3;
    wire_put_u8(out, what & 3);
    for (int i = 0; i < 5; i++)
        wire_put_u64(out, fuzz_byte(in) & 7);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < 2 * n; i++)
        wire_put_u32(out, what & 0x80 ? fuzz_byte(in) : i / 2 * 2);
}

static void put_bytes(struct fuzz_bytes *in, struct wire_out *out)
{
    size_t n, want = fuzz_byte(in);
    const uint8_t *bytes = fuzz_take(in, want, &n);
    wire_put_u64(out, want & 7); /* id of a question */
    wire_put_raw(out, bytes, n);
}

void forge_frame(const struct forge *forge, struct fuzz_bytes *in, uint8_t type,
                 struct wire_out *out)
{
    const struct wire_out *sig = &forge->sigs[fuzz_below(in, forge->nsigs)];
    wire_put_u8(out, type);
    switch (type) {
    case FRAME_LEAD:
        put_lead(forge, in, out);
        return;
    case FRAME_CLAIM:
        put_claim(forge, in, sig, out);
        return;
    case FRAME_JOINED:
        put_joined(in, out);
        return;
    case FRAME_CANCEL:
        wire_put_str(out, forge->id);
        return;
    case FRAME_RELEASE:
        wire_put_u64(out, fuzz_byte(in)); /* number of the call */
        put_result(in, sig, out);
        return;
    case FRAME_OUTCOME:
        put_outcome(in, sig, out);
        return;
    case FRAME_CONTRIB:
    case FRAME_WANTED:
    case FRAME_DOUBT:
    case FRAME_HAVE:
    case FRAME_PIECE:
        wire_put_block(out, sig->data, sig->len);
        break;
    default:
        put_bytes(in, out);
        return;
    }
    if (type == FRAME_CONTRIB)
        put_contrib(in, out);
    else if (type == FRAME_DOUBT)
        put_doubt(in, out);
    else
        wire_put_u64(out, fuzz_byte(in));
    if (type == FRAME_WANTED)
        wire_put_u8(out, fuzz_byte(in) & 1);
    else if (type == FRAME_PIECE)
        put_entries(in, out);
}
