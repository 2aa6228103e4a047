/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One direct connection from the moment on when both ends know each other: frames out and in, in
 * order, each in one or more sealed records (record.h). A frame that was written counts as
 * delivered once the peer has said that it has taken it. What is not when the connection ends goes
 * another way; the link drops repetitions.
 *
 *        stream_bye()         it is written       BYE comes
 *   OPEN ────────────► SAYING ────────────► SAID ──────────┐
 *    │ BYE comes          │ BYE comes                      ▼   all is said      end of file comes
 *    └────────────────────┴──► ANSWERING ── ours written ► BOTH ────────► SHUT ────────► ENDED
 *
 * Neither end closes its socket before it has read the other one's end of file, because the kernel
 * would destroy what is under way. Any other end is one that was not in order: CUT by this end, or
 * CLOSED by the peer. A connection whose keys have sealed their share ends in order, too; its owner
 * makes another one, which has keys of its own.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_TRANSPORT_DIRECT_STREAM_H
#define MUSTER_TRANSPORT_DIRECT_STREAM_H

#include "common/transport/direct/record.h"
#include "common/transport/direct/sockets.h"
#include "common/transport/frame.h"
#include "common/util/shared_bytes.h"
#include "common/util/timers.h"

#include <event2/event.h>

struct stream;

/** Bytes that wait for a peer: one frame. */
struct outgoing {
    struct outgoing *next;
    void *data; /**< owned */
    size_t len;
    struct shared_bytes *body; /**< held: what follows; NULL for nothing */
    enum frame_care care;
};

/** @return its bytes */
size_t outgoing_len(const struct outgoing *frame);

/** Frees a list of them. @param list may be NULL */
void outgoing_free(struct outgoing *list);

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
    /** Takes frames. It may send, and stream_cut(), but not free. @param data borrowed
     * @param whole what they are part of, to be held by shared_bytes_part(); NULL: nothing is */
    void (*receive)(void *arg, struct stream *stream, const void *data, size_t len,
                    struct shared_bytes *whole);
    /** The connection has ended; the owner frees it, with or without what was not delivered. Never
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

/** Whether stream_send() may be called: neither end has said BYE, and nothing is broken. */
bool stream_is_open(const struct stream *stream);

/** Sends a frame, taken over, at once if the socket takes it. */
void stream_send(struct stream *stream, struct outgoing *frame);

/** Ends it in order, when all was sent. */
void stream_bye(struct stream *stream);

/** Has the peer say at once what it has taken, now and for all that is sent from now on. */
void stream_hurry(struct stream *stream);

/** Ends it out of order. @param why one clause, borrowed for ever */
void stream_cut(struct stream *stream, const char *why);

/** What the peer has not said to have taken, the oldest first; borrowed. */
const struct outgoing *stream_pending(const struct stream *stream);

/** Takes that out of it. */
struct outgoing *stream_take_pending(struct stream *stream);

/** Whether the peer has closed it, as one does whose process ends. */
bool stream_peer_closed(const struct stream *stream);

/** When something last went over it, now_ms(). */
int64_t stream_used(const struct stream *stream);

void stream_free(struct stream *stream);

#endif
