/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The canonical signature: what makes two calls on different servers the same operation.
 *
 * The kind of operation, for groups and connections the id, and the participants. Disjoint sets of
 * processes may therefore use one group id at the same time. Compared as bytes, in full.
 */
#pragma once

#include "common/tracker/values/procset.h"

/** The operations that the engine runs. */
enum coll_kind {
    COLL_FENCE = 1,  /**< PMIx_Fence, with and without data */
    COLL_CONSTRUCT,  /**< PMIx_Group_construct, collective method */
    COLL_DESTRUCT,   /**< PMIx_Group_destruct */
    COLL_CONNECT,    /**< PMIx_Connect */
    COLL_DISCONNECT, /**< PMIx_Disconnect */
    COLL_KIND_END,
};

enum { COLL_DESCRIBE_MAX = PROCSET_NAME_MAX + 24 /**< of coll_describe()'s buffer, bytes */ };

/** A signature taken apart. */
struct signature {
    enum coll_kind kind;
    char id[PROCSET_NAME_MAX + 1]; /**< group id; a connection's id or ""; of a fence "", or
                                      the connection's name by which it was called */
    struct procset members;        /**< participants */
};

/** Appends the canonical bytes of an operation; @p members is canonical. */
void signature_write(struct wire_out *out, enum coll_kind kind, const char *id,
                     const struct procset *members);

/** Takes bytes apart; signature_free() it also after an error.
 * @return 0, or -1 when the bytes are no signature */
int signature_read(struct signature *sig, const void *data, size_t len);

void signature_free(struct signature *sig);

/** @return the kind of a signature; 0 when the bytes are none */
enum coll_kind signature_kind(const void *data, size_t len);

/** @return whether processes of a namespace take part in an operation */
bool signature_names(const void *data, size_t len, const char *nspace);

/** What differs between the kinds, as far as the engine goes. */
struct coll_traits {
    const char *name;    /**< "fence", "construct", …; NULL: there is no such kind */
    bool is_group;       /**< its id is a group's */
    bool is_recoverable; /**< its success is kept for servers that the release does not reach */
    bool adds;           /**< participants may add members, and libpmix may cancel it */
};

/** @return those of @p kind, which is less than COLL_KIND_END */
const struct coll_traits *coll_traits(enum coll_kind kind);

/** Names an operation without its participants: `a fence`, `group "ocean" construct`, `a connect`,
 * `connect "couple"`. */
void coll_describe(enum coll_kind kind, const char *id, char *buf, size_t cap);

/** How messages name the operation: `group "ocean" construct`, `fence of 8 processes`,
 * `connect "couple" of 8 processes`. */
void signature_describe(const void *data, size_t len, char *buf, size_t cap);

/** FNV-1a, the same on every server: it finds a bucket and spreads the roots, no more. */
uint64_t signature_hash(const void *data, size_t len);
