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
