/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Frames between servers, each delivered at most once and in the order of sending.
 *
 * A back end may deliver bytes twice, and later ones first. Every frame is numbered by its sender
 * for its receiver; the receiver keeps a window of frames whose turn has not come.
 *
 * The first frame to each server begins with a greeting: what the two must have alike (greeting.h).
 * Since nothing is delivered before the first frame, no frame of a server that does not fit is.
 *
 * Each frame is kept until it has arrived. Two ways take frames from here when they have room: a
 * connection (link_next()), or natively the back end (link_batch()). A server has one way at a
 * time. What came by a connection its receiver acknowledges: all of a server's frames up to a
 * number. That goes along with the next frame to that server, or by itself after a moment. Of what
 * goes natively the back end says that it has arrived (link_arrived()), at the receiver's socket; a
 * server that leaves asks whether it was taken, too (FRAME_LAST). When a way ends or fails,
 * or the other one takes its place, all that is kept is sent again; the receiver drops what comes
 * twice. docs/transport.md has each loss.
 *
 * A frame names its sender by the hash of its step's namespace and its node's index there. Servers
 * of the own step are always known. One of another step is once its first frame has introduced its
 * namespace (FRAME_NSPACE); what comes of it before waits. Here, servers are handles (rm.h).
 * @thread all of it: the loop's
 */
#pragma once

#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/shared_bytes.h"
#include "common/util/timers.h"

struct link;

/** A frame on its way out: the link keeps it until it has arrived, while connections write it. */
struct outgoing {
    struct outgoing *next; /**< of the list that it is in */
    unsigned owners;
    uint64_t number;           /**< as the frame says; 0: in no order */
    uint64_t ticket;           /**< of the batch that it was last in; 0: of none */
    void *data;                /**< owned */
    size_t len;                /**< bytes */
    struct shared_bytes *body; /**< held: what follows; NULL for nothing */
    enum frame_care care;
};

/** @param data malloc()ed, taken over also when it fails @param body held; may be NULL
 * @return a frame with one owner, or NULL when out of memory */
struct outgoing *outgoing_new(void *data, size_t len, struct shared_bytes *body,
                              enum frame_care care, uint64_t number);

/** @return all its bytes */
size_t outgoing_len(const struct outgoing *frame);

/** Removes an owner; the last one's removal frees it. @param frame may be NULL */
void outgoing_drop(struct outgoing *frame);

/** Where frames go. */
struct link_env {
    void *arg;
    uint32_t self, nnodes; /**< in the own step */
    uint64_t step;         /**< tells this step's frames from another's */
    /** link_batch() has something for that server. */
    void (*native)(void *arg, uint32_t node);
    /** Takes one new frame. @param body borrowed @param whole what it is part of, to be held by
     * shared_bytes_part(); NULL: nothing is */
    void (*deliver)(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
                    struct shared_bytes *whole);
    /** @return 0 and the handle of a server of another step, -1: it is not known, or 1: its step
     * was known and has ended. NULL: only the own step's servers are heard */
    int (*find)(void *arg, uint64_t step, uint32_t index, uint32_t *node);
    /** Takes the introduction of a step that is not known; find() knows it afterwards.
     * @param body borrowed @return false: it was refused */
    bool (*introduce)(void *arg, uint64_t step, const void *body, size_t len);
    /** Appends what server @p node is told of us. NULL: servers do not greet each other */
    void (*greet)(void *arg, uint32_t node, struct wire_out *greeting);
    /** Takes server @p from's greeting, perhaps more than once. It may call link_send().
     * @param greeting borrowed; NULL: it has none
     * @return false: nothing of that server is to be delivered */
    bool (*fits)(void *arg, uint32_t from, const void *greeting, size_t len);
    struct timers *timers; /**< borrowed; NULL with connect() */
    /** A frame is to go to a server; a connection is made if there can be one.
     * @return whether one takes it by link_next(), now or later. NULL: all goes natively */
    bool (*connect)(void *arg, uint32_t node);
    bool required; /**< nothing but frames in no order goes natively */
    /** link_next() has something for the connection to that server, if it is there. */
    void (*ready)(void *arg, uint32_t node);
    /** A server has acknowledged nothing for some seconds. */
    void (*stuck)(void *arg, uint32_t node);
};

/** @return a link, or NULL when out of memory */
struct link *link_new(const struct link_env *env);

/** Sends a frame that begins with its type byte; takes the bytes out of @p frame. The first one to
 * a server of another step has to be a FRAME_NSPACE about ourselves. */
void link_send(struct link *link, uint32_t node, struct wire_out *frame);

/** The same of a frame whose end is the same for several servers.
 * @param body follows what is in @p frame; borrowed: link_send_shared() holds what it keeps. NULL:
 * nothing follows */
void link_send_shared(struct link *link, uint32_t node, struct wire_out *frame,
                      struct shared_bytes *body);

/** Takes what was received: one or more frames, one after another. @param data borrowed
 * @param whole what they are part of; NULL: nothing is, as of the back end
 * @param by_connection and not natively: it is to be acknowledged */
void link_receive(struct link *link, const void *data, size_t len, struct shared_bytes *whole,
                  bool by_connection);

/** Sends a frame in no order, which goes natively alone. @param frame its type and body; its bytes
 * are taken @param care CARE_MAY: once, also to a server that was given up */
void link_send_loose(struct link *link, uint32_t node, struct wire_out *frame,
                     enum frame_care care);

/** Takes the next frame for the connection to a server.
 * @return a frame to be dropped with outgoing_drop(), or NULL: there is none */
struct outgoing *link_next(struct link *link, uint32_t node);

/** Takes the next frames that are to go to a server natively.
 * @param max bytes; one frame may have more @param out the frames' bytes are appended
 * @return a ticket for link_arrived(), higher than those before; 0: there is nothing, or no memory,
 * and then @p out says so */
uint64_t link_batch(struct link *link, uint32_t node, size_t max, struct wire_out *out);

/** A batch has arrived, and all that were taken before it and have not failed. */
void link_arrived(struct link *link, uint32_t node, uint64_t ticket);

/** A batch has failed: what has not arrived is sent again.
 * @return whether link_batch() gives it: it was worth to be sent again, and no connection has it */
bool link_failed(struct link *link, uint32_t node);

/** The connection to a server has ended, or another one has taken its place: what has not arrived
 * is sent again.
 * @param natively there is no connection that could take it, nor is one awaited */
void link_again(struct link *link, uint32_t node, bool natively);

/** A server was given up, or has left: nothing is kept for it any more. */
void link_forget(struct link *link, uint32_t node);

/** What is kept for a server, as it has not arrived there. Of a server that leaves, what must
 * arrive and is not known to be taken counts, too. */
struct link_owed {
    uint32_t frames, must, should; /**< by care */
    uint64_t bytes;
};

struct link_owed link_owed(const struct link *link, uint32_t node);

/** Of what is kept for slow servers, how much of CARE_SHOULD, in bytes; beyond that a server that
 * has more than its share takes no more. */
enum { LINK_FULL = 64 << 20, LINK_SHARE = 64 << 10 };

/** @return whether an event for a server is to be refused: too much waits, there and in all. What
 * has a bound by itself need not ask. */
bool link_is_full(const struct link *link, uint32_t node);

/** This server is about to leave: what it sends and takes is acknowledged at once, and servers are
 * asked for what has arrived natively. Called again and again. */
void link_hurry(struct link *link);

/** Answers a FRAME_LAST that has come. */
void link_answer(struct link *link, uint32_t node);

/** What went between us and one other server. */
struct link_counts {
    uint64_t frames_out, bytes_out, frames_in, bytes_in;
    uint64_t repeated; /**< frames that came again, and were dropped */
    uint64_t held;     /**< frames that wait for those before them */
    uint64_t refused;  /**< frames that came from another run of the step */
};

struct link_counts link_counts(const struct link *link, uint32_t node);

void link_free(struct link *link);
