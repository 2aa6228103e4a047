/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of a connection. Private to stream.c and stream_read.c. @thread the loop's
 */
#ifndef MUSTER_TRANSPORT_DIRECT_STREAM_PRIVATE_H
#define MUSTER_TRANSPORT_DIRECT_STREAM_PRIVATE_H

#include "common/transport/direct/stream.h"

struct stream {
    const struct stream_env *env;
    void *owner;
    int fd;
    struct event *read, *write;
    struct session session;
    enum { STREAM_OPEN, STREAM_BYE_SAID, STREAM_BYE_TAKEN, STREAM_BOTH } state; /**< stream.h */
    const char *why; /**< it was cut, and the owner is to learn it */
    bool ended;      /**< the same, in order */
    bool closed;     /**< the peer has closed it out of order */
    int broken;      /**< errno of a write; what the peer has said is read first */

    struct outgoing *pending, **tail; /**< not taken by the peer, in order */
    struct outgoing *unwritten;       /**< the first of these that is not written as a whole */
    uint64_t written, acked;          /**< DATA records */
    unsigned char out[RECORD_HEAD];   /**< of the record that is being written */
    int heading;                      /**< its kind; 0: none is */
    size_t at;                        /**< bytes of it that are written */
    bool full;                        /**< the socket took nothing more */
    bool ack;                         /**< what was taken is to be said */
    bool ask;                         /**< the peer is to say what it has taken */
    bool hurry;                       /**< and with each DATA */
    bool bye_out, shut;               /**< BYE is written; and the end of file */

    unsigned char in[RECORD_HEAD]; /**< of the record that is being read */
    size_t have;                   /**< bytes of it */
    struct record record;          /**< once it is whole */
    unsigned char *body;           /**< owned: one that has not come as a whole; NULL: none */
    size_t got;                    /**< bytes of it */
    uint64_t taken;                /**< DATA records */
    size_t untold;                 /**< bytes of those that the peer was not told of */

    int64_t ack_by, progress_by, end_by; /**< now_ms(); 0: there is no such deadline */
    int64_t used;
};

enum { STREAM_ACK_MS = 20 /**< what was taken is said by then, if no frame brings it along */ };

/** Reads what there is; sets why, or ended. */
void stream_read(struct stream *s);

/** Writes what the socket takes. */
void stream_write(struct stream *s);

/** The peer has taken @p taken records. @return false: so many were not sent */
bool stream_took(struct stream *s, uint64_t taken);

/** The peer has said BYE. */
void stream_bye_came(struct stream *s);

/** It has ended in order. */
void stream_finish(struct stream *s);

#endif
