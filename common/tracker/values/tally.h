/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long operations waited, and which server came last: counts of one server, whose memory and
 * cost do not grow with the operations or the servers. docs/late.md says what the numbers mean.
 * @thread any, one at a time
 */
#pragma once

#include "common/tracker/values/signature.h"
#include "common/transport/wire.h"
#include "common/util/times.h"

enum {
    TALLY_OPERATIONS = 8, /**< signatures that are told apart */
    TALLY_LATE = 16,      /**< pairs of a server and a kind that are told apart */
    TALLY_NAME_SIZE = 80, /**< of an operation's name */
};

/** The operations of one signature. */
struct tally_operation {
    uint64_t hash; /**< of the signature */
    uint64_t rank; /**< how often it was made, at most: by this the least used makes room */
    enum coll_kind kind;
    char name[TALLY_NAME_SIZE]; /**< as signature_describe() has it, perhaps cut; "": it has come
                                   once since it took another one's place */
    struct times waits;
};

/** A server that was last in operations of one kind. */
struct tally_late {
    uint32_t node;
    enum coll_kind kind;
    uint64_t rank;      /**< µs late in all, at most: by this the least late makes room */
    struct times times; /**< how much later than the last but one */
};

/** All zero is an empty one. */
struct tally {
    struct times waits[COLL_KIND_END]; /**< of this server's calls, from call to answer */
    uint64_t decided[COLL_KIND_END];   /**< operations that this server has decided: successes */
    uint32_t noperations, nservers;
    struct tally_operation operations[TALLY_OPERATIONS]; /**< the most used; in no order */
    struct tally_late servers[TALLY_LATE];               /**< the latest; in no order */
};

/** Notes a call of this server. @param sig its signature; one of another
 * kind, or none: it has none of its own */
void tally_wait(struct tally *tally, enum coll_kind kind, const void *sig, size_t siglen,
                uint64_t us);

/** Notes that server @p node was last of several in an operation that this server has decided.
 * @param us after the last but one */
void tally_last(struct tally *tally, enum coll_kind kind, uint32_t node, uint64_t us);

/** Adds what another server has counted, but for the most used operations. */
void tally_merge(struct tally *tally, const struct tally *more);

/** Appends what tally_merge() takes:
 *     u32 count, { u8 kind, u64 operations that were decided, times: waits }…
 *     u32 count, { u32 node, u8 kind, u64 rank, times }…
 * where times are u64 µs in all, u64 µs at most, u32 count, { u8 bucket, u64 count, u64 µs }….
 * @param nnodes servers of other steps, which are called otherwise elsewhere, are left out */
void tally_write(const struct tally *tally, uint32_t nnodes, struct wire_out *out);

/** Reads all that is left of @p in. @param tally all zero @return whether it makes sense */
bool tally_read(struct tally *tally, uint32_t nnodes, struct wire_in *in);
