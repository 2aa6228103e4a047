/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of waits and of late servers.
 *
 * The two lists have room for a few. What comes when a list is full takes the place of the least,
 * and begins with that one's rank. So whatever has more than one part in TALLY_… of all is in the
 * list at the end, however many others came by. Times are counted from when it came into the list.
 */
#include "common/tracker/values/tally.h"

static struct tally_operation *operation_of(struct tally *tally, const void *sig, size_t siglen)
{
    uint64_t hash = signature_hash(sig, siglen), rank = 0;
    struct tally_operation *o = NULL;
    for (uint32_t i = 0; i < tally->noperations; i++) {
        struct tally_operation *other = &tally->operations[i];
        if (other->hash == hash)
            return other;
        if (o == NULL || other->rank < o->rank)
            o = other;
    }
    if (tally->noperations < TALLY_OPERATIONS)
        o = &tally->operations[tally->noperations++];
    else
        rank = o->rank;
    *o = (struct tally_operation){.hash = hash, .rank = rank, .kind = signature_kind(sig, siglen)};
    if (rank == 0)
        signature_describe(sig, siglen, o->name, sizeof o->name);
    return o;
}

void tally_wait(struct tally *tally, enum coll_kind kind, const void *sig, size_t siglen,
                uint64_t us)
{
    times_add(&tally->waits[kind], us);
    if (signature_kind(sig, siglen) != kind)
        return;
    struct tally_operation *o = operation_of(tally, sig, siglen);
    o->rank++;
    if (o->name[0] == '\0' && o->waits.count > 0) /* most newcomers come once */
        signature_describe(sig, siglen, o->name, sizeof o->name);
    times_add(&o->waits, us);
}

static struct tally_late *server_of(struct tally *tally, enum coll_kind kind, uint32_t node)
{
    uint64_t rank = 0;
    struct tally_late *s = NULL;
    for (uint32_t i = 0; i < tally->nservers; i++) {
        struct tally_late *other = &tally->servers[i];
        if (other->node == node && other->kind == kind)
            return other;
        if (s == NULL || other->rank < s->rank)
            s = other;
    }
    if (tally->nservers < TALLY_LATE)
        s = &tally->servers[tally->nservers++];
    else
        rank = s->rank;
    *s = (struct tally_late){.node = node, .kind = kind, .rank = rank};
    return s;
}

void tally_last(struct tally *tally, enum coll_kind kind, uint32_t node, uint64_t us)
{
    struct tally_late *s = server_of(tally, kind, node);
    s->rank += us;
    times_add(&s->times, us);
}

void tally_merge(struct tally *tally, const struct tally *more)
{
    for (int kind = 0; kind < COLL_KIND_END; kind++) {
        tally->decided[kind] += more->decided[kind];
        times_merge(&tally->waits[kind], &more->waits[kind]);
    }
    for (uint32_t i = 0; i < more->nservers; i++) {
        const struct tally_late *other = &more->servers[i];
        struct tally_late *s = server_of(tally, other->kind, other->node);
        s->rank += other->rank;
        times_merge(&s->times, &other->times);
    }
}

static void write_times(const struct times *times, struct wire_out *out)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < TIMES_BUCKETS; i++)
        n += times->n[i] > 0;
    wire_put_u64(out, times->total_us);
    wire_put_u64(out, times->max_us);
    wire_put_u32(out, n);
    for (unsigned i = 0; i < TIMES_BUCKETS; i++) {
        if (times->n[i] == 0)
            continue;
        wire_put_u8(out, (uint8_t)i);
        wire_put_u64(out, times->n[i]);
        wire_put_u64(out, times->us[i]);
    }
}

/* Sums are kept far from where they would overflow. */
static uint64_t read_sum(struct wire_in *in)
{
    uint64_t n = wire_get_u64(in);
    in->bad |= n > UINT64_MAX >> 16;
    return n;
}

static void read_times(struct times *times, struct wire_in *in)
{
    times->total_us = read_sum(in);
    times->max_us = read_sum(in);
    uint32_t n = wire_get_count(in, 17);
    for (uint32_t k = 0; k < n && !in->bad; k++) {
        uint8_t i = wire_get_u8(in);
        uint64_t count = read_sum(in), us = read_sum(in);
        in->bad |= i >= TIMES_BUCKETS || (i < TIMES_BUCKETS && times->n[i] != 0) || count == 0;
        if (in->bad)
            return;
        times->n[i] = count;
        times->us[i] = us;
        times->count += count;
    }
}

void tally_write(const struct tally *tally, uint32_t nnodes, struct wire_out *out)
{
    uint32_t n = 0;
    wire_put_u32(out, COLL_KIND_END - COLL_FENCE);
    for (int kind = COLL_FENCE; kind < COLL_KIND_END; kind++) {
        wire_put_u8(out, (uint8_t)kind);
        wire_put_u64(out, tally->decided[kind]);
        write_times(&tally->waits[kind], out);
    }
    for (uint32_t i = 0; i < tally->nservers; i++)
        n += tally->servers[i].node < nnodes;
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < tally->nservers; i++) {
        const struct tally_late *s = &tally->servers[i];
        if (s->node >= nnodes)
            continue;
        wire_put_u32(out, s->node);
        wire_put_u8(out, (uint8_t)s->kind);
        wire_put_u64(out, s->rank);
        write_times(&s->times, out);
    }
}

static enum coll_kind read_kind(struct wire_in *in)
{
    uint8_t kind = wire_get_u8(in);
    in->bad |= kind < COLL_FENCE || kind >= COLL_KIND_END;
    return in->bad ? COLL_FENCE : (enum coll_kind)kind;
}

bool tally_read(struct tally *tally, uint32_t nnodes, struct wire_in *in)
{
    uint32_t n = wire_get_count(in, 29);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct times waits = {0};
        enum coll_kind kind = read_kind(in);
        tally->decided[kind] = read_sum(in);
        read_times(&waits, in);
        tally->waits[kind] = waits;
    }
    n = wire_get_count(in, 33);
    in->bad |= n > TALLY_LATE;
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        struct tally_late *s = &tally->servers[i];
        s->node = wire_get_u32(in);
        s->kind = read_kind(in);
        s->rank = read_sum(in);
        read_times(&s->times, in);
        in->bad |= s->node >= nnodes;
        tally->nservers = i + 1;
    }
    return wire_end(in);
}
