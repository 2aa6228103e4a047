/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of a connection. Private to stream_seal.c, stream.c and stream_read.c. @thread the loop's
 */
#pragma once

#include "common/transport/direct/stream.h"

/** What has become of a connection. */
enum stream_state {
    STREAM_OPEN,
    STREAM_ENDED,  /**< in order: one of both ends has said BYE */
    STREAM_CUT,    /**< by this end: stream::why */
    STREAM_CLOSED, /**< by the peer, without BYE */
};

struct stream {
    const struct stream_env *env;
    void *owner;
    int fd;
    struct event *read, *write;
    struct seal *seal;       /**< owned */
    enum stream_state state; /**< STREAM_OPEN, and then one of the others */
    const char *why;         /**< for the owner; NULL: in order */
    int broken;              /**< errno of a write; what the peer has said is read first */

    struct outgoing *frame;   /**< owned: is being sealed; NULL: none */
    size_t at;                /**< bytes of that which are sealed */
    uint32_t records;         /**< sealed */
    bool apart;               /**< the end of that is to be written as it was sealed */
    size_t apart_at;          /**< bytes of it that are written */
    unsigned char *rest;      /**< owned: records that the socket did not take; or NULL */
    size_t rest_at, rest_len; /**< the first byte of that to be written, and its end */
    bool unsealable;          /**< libcrypto has failed */
    bool full;                /**< the socket took nothing more */

    unsigned char *kept;       /**< owned: the beginning of a record; NULL: none is awaited */
    size_t have;               /**< bytes of it */
    struct shared_bytes *body; /**< held: a frame that has not come as a whole; NULL: none */
    size_t got;                /**< bytes of it */
    struct seal *seal_apart;   /**< owned: deciphers its end; NULL: that is as all else */

    struct timer part;   /**< more of the record that is kept has to come */
    int64_t part_by;     /**< now_ms(), by then */
    int64_t used, moved; /**< now_ms() */
};

#define OUT_OF_MEMORY "memory is used up here"

enum {
    STREAM_PART_MS = 1000 /**< until more of a record has come: what is changed on its way can
                             seem to be long */
};

/** It has ended, unless it had before: the loop then tells the owner.
 * @param why as for stream_env::ended */
void stream_end(struct stream *s, enum stream_state how, const char *why);

/** Seals as many records as are written at once. @param to STREAM_ROOM bytes @return how many it
 * took; 0 with unsealable: libcrypto has failed */
size_t stream_seal(struct stream *s, unsigned char *to);

/** @p n more bytes of the frame are sealed. */
void stream_sealed(struct stream *s, size_t n);

/** Seals a BYE. As stream_seal(). */
size_t stream_seal_bye(struct stream *s, unsigned char *to);
