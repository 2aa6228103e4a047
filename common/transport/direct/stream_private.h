/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of a connection. Private to stream_seal.c, stream.c and stream_read.c. @thread the loop's
 */
#ifndef MUSTER_TRANSPORT_DIRECT_STREAM_PRIVATE_H
#define MUSTER_TRANSPORT_DIRECT_STREAM_PRIVATE_H

#include "common/transport/direct/stream.h"

/** How far a connection is. stream.h has the picture, stream.c the table of how it moves. */
enum stream_state {
    STREAM_OPEN,      /**< frames go both ways */
    STREAM_SAYING,    /**< our BYE is to go out, behind all that was sent */
    STREAM_SAID,      /**< it is out; the peer's has not come */
    STREAM_ANSWERING, /**< the peer's has come, and ours is to go out */
    STREAM_BOTH,      /**< both have been said; what was taken may still be to be said */
    STREAM_SHUT,      /**< our end of file is written; the peer's has not come */
    STREAM_ENDED,     /**< in order */
    STREAM_CUT,       /**< out of order, by this end: stream::why */
    STREAM_CLOSED,    /**< the peer has closed it out of order */
    STREAM_STATES,
};

/** What can happen to it. */
enum stream_event {
    STREAM_SAY,   /**< this end is to say BYE */
    STREAM_WRITE, /**< our BYE is written */
    STREAM_HEAR,  /**< the peer's has come */
    STREAM_FIN,   /**< nothing is left to say */
    STREAM_END,   /**< the peer's end of file has come after all else */
    STREAM_BREAK, /**< something is wrong with it, or the owner does not want it any more */
    STREAM_CLOSE, /**< the peer's end of file has come too early, or its reset */
    STREAM_EVENTS,
};

/* That a write has failed (broken) is no state: until what the peer has said was read, it goes
 * through all of them. ack, ask and hurry are what the next record says. */
struct stream {
    const struct stream_env *env;
    void *owner;
    int fd;
    struct event *read, *write;
    struct seal *seal; /**< owned */
    enum stream_state state;
    const char *why; /**< for the owner, once it is STREAM_CUT or STREAM_CLOSED */
    int broken;      /**< errno of a write; what the peer has said is read first */

    struct outgoing *pending, **tail; /**< not taken by the peer, in order */
    struct outgoing *unsealed;        /**< the first of these that is not sealed as a whole */
    size_t at;                        /**< bytes of that which are sealed */
    uint64_t sealed, acked;           /**< frames */
    uint32_t records;                 /**< sealed */
    bool apart;                       /**< the end of that is to be written as it was sealed */
    size_t apart_at;                  /**< bytes of it that are written */
    unsigned char *rest;              /**< owned: records that the socket did not take; or NULL */
    size_t rest_at, rest_len;         /**< the first byte of that to be written, and its end */
    bool unsealable;                  /**< libcrypto has failed */
    bool bye;                         /**< our BYE is sealed, and not written */
    bool full;                        /**< the socket took nothing more */
    bool ack;                         /**< what was taken is to be said */
    bool ask;                         /**< the peer is to say what it has taken */
    bool hurry;                       /**< and with each DATA */

    unsigned char *kept;       /**< owned: the beginning of a record; NULL: none is awaited */
    size_t have;               /**< bytes of it */
    struct shared_bytes *body; /**< held: a frame that has not come as a whole; NULL: none */
    size_t got;                /**< bytes of it */
    struct seal *seal_apart;   /**< owned: deciphers its end; NULL: that is as all else */
    bool hurried;              /**< that it has come is to be said at once */
    uint64_t taken;            /**< frames */
    size_t untold;             /**< bytes of those that the peer was not told of */

    int64_t ack_by, progress_by, end_by; /**< now_ms(); 0: there is no such deadline */
    struct timer due;                    /**< the first of them */
    int64_t used;
};

#define OUT_OF_MEMORY "memory is used up here"

enum { STREAM_ACK_MS = 20 /**< what was taken is said by then, if no frame brings it along */ };

/** Whether it has ended, in order or not: the owner is to learn it. */
static inline bool stream_is_over(const struct stream *s)
{
    return s->state >= STREAM_ENDED;
}

/** Whether the peer may still send frames. */
static inline bool stream_hears(const struct stream *s)
{
    return s->state <= STREAM_SAID;
}

/** Notes what has happened to it. @return whether that can happen now */
bool stream_move(struct stream *s, enum stream_event event);

/** The same of an event that ends it, unless it is over: the loop then tells the owner.
 * @param why as for stream_env::ended */
void stream_end(struct stream *s, enum stream_event event, const char *why);

/** Seals as many records as are written at once. @param to STREAM_ROOM bytes @return how many it
 * took; 0 with unsealable: libcrypto has failed */
size_t stream_seal(struct stream *s, unsigned char *to);

/** @p n more bytes of the first frame that is not sealed are. */
void stream_sealed(struct stream *s, size_t n);

/** Writes what the socket takes. */
void stream_write(struct stream *s);

/** The peer has taken @p taken frames. @return false: so many were not sent */
bool stream_took(struct stream *s, uint64_t taken);

/** The peer has said BYE. */
void stream_bye_came(struct stream *s);

/** One of a stream's deadlines is due. @param arg the stream */
void stream_on_due(void *arg, struct timer *timer);

#endif
