/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One direct connection from the moment on when both ends know each other: frames out and in, in
 * order, each in one or more sealed records (record.h). It takes frames from the link when it can
 * write them, and keeps none but the one that it is writing. Nothing has to arrive: what does the
 * link acknowledges, and what does not it sends again. So an end needs no answer. BYE ahead of it
 * says that neither the connection nor its server has failed.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/transport/direct/record.h"
#include "common/transport/direct/sockets.h"
#include "common/transport/link.h"
#include "common/util/timers.h"

#include <event2/event.h>

struct stream;

enum {
    STREAM_ROOM = 4 * RECORD_BYTES, /**< bytes that are read or written at once */
    STREAM_RECORDS = 1 << 30,       /**< that a connection's keys seal, in each direction */
};

/** What all connections of a server have in common. */
struct stream_env {
    void *arg;
    const struct seal_ops *seal;
    const struct sockets *sockets;
    unsigned char *room; /**< STREAM_ROOM bytes to read to, and as many to write from */
    uint32_t records;    /**< as STREAM_RECORDS; 0: that many */
    /** @return the next frame to be written, to be dropped with outgoing_drop(); NULL: none */
    struct outgoing *(*next)(void *arg, struct stream *stream);
    /** Takes frames. It may send, and stream_cut(), but not free. @param data borrowed
     * @param whole what they are part of, to be held by shared_bytes_part(); NULL: nothing is */
    void (*receive)(void *arg, struct stream *stream, const void *data, size_t len,
                    struct shared_bytes *whole);
    /** The connection has ended; the owner frees it. Never
     * called from within another function of this header.
     * @param why one clause; NULL: it ended in order */
    void (*ended)(void *arg, struct stream *stream, const char *why);
    struct timers *timers;
};

/** @param fd taken over also when it fails: connected, does not block
 * @param seal taken over also when it fails
 * @param owner handed back by stream_owner()
 * @return NULL when out of memory */
struct stream *stream_new(const struct stream_env *env, struct event_base *base, int fd,
                          struct seal *seal, void *owner);

/** @return what stream_new() was given */
void *stream_owner(const struct stream *stream);

/** Whether frames go by it: it has not ended. */
bool stream_is_open(const struct stream *stream);

/** stream_env::next() may have something: it is written, as far as the socket takes it. */
void stream_write(struct stream *stream);

/** Ends it in order, as far as the socket takes a BYE. */
void stream_bye(struct stream *stream);

/** Ends it out of order. @param why one clause, borrowed for ever */
void stream_cut(struct stream *stream, const char *why);

/** Whether the peer has closed it, as one does whose process ends. */
bool stream_peer_closed(const struct stream *stream);

/** When something last went over it, now_ms(). */
int64_t stream_used(const struct stream *stream);

/** When the peer's kernel last made room for more than it had, now_ms(); 0: it never had to. */
int64_t stream_moved(const struct stream *stream);

void stream_free(struct stream *stream);
