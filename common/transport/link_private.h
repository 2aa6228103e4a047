/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the link. Private to link_kept.c, link_native.c, link_receive.c and link.c, which is
 * their order. @thread the loop's
 */
#pragma once

#include "common/transport/link.h"

/** What came from one sender: every number up to low, and some after it. */
struct window {
    uint64_t low;
    uint32_t nheld, cap;
    /** Frames that wait for those before them, type byte and body; at n % cap: number n, low < n <=
     * low + cap, NULL where none waits. NULL while none does at all. */
    struct shared_bytes **held;
};

/** Another server; made with the first frame to or from it: most servers of a large step never
 * meet. */
struct link_peer {
    struct link *link;
    uint32_t node;
    struct link_counts counts;
    uint64_t numbers;      /**< of what is sent to it, used until now */
    uint64_t taken;        /**< up to which it has acknowledged that */
    uint64_t natively;     /**< of the last frame of CARE_MUST that has arrived natively */
    uint64_t last;         /**< of our last FRAME_LAST to it; 0: there was none */
    struct window *window; /**< of what it sends, made when the first frame comes */
    bool refused;          /**< its greeting was: nothing that it sends counts */

    struct outgoing *kept, **end; /**< owned: what has not arrived, in order */
    struct outgoing *next;        /**< the first of these that the present way has not got */
    struct outgoing *loose;       /**< owned: in no order, for the native way */
    bool direct;                  /**< the present way is a connection, or one is awaited */
    bool forgotten;               /**< it was given up: nothing is kept for it */
    uint64_t tickets;             /**< of batches, used until now */
    struct link_owed owed;        /**< what is kept */
    bool asked;                   /**< it knows that we leave */

    bool hurried;   /**< it leaves: what was taken of it is said at once */
    bool ack_now;   /**< that is to be said now */
    int64_t ack_by; /**< when it is to be said, ms; 0: there is nothing to say */

    int64_t progress_by; /**< when it has to have acknowledged something, ms; 0: it need not */
    struct timer due;    /**< the first of both */
};

struct link {
    struct link_env env;
    uint32_t npeers, cap;     /**< cap: 0, or a power of 2 */
    struct link_peer **peers; /**< a hash table by handle, at most half full; owned */
    struct stranger *strangers;
    size_t nstrangers; /**< bytes of them */
    bool told;         /**< of bytes that name no server of ours */
    bool hurry;        /**< this server leaves */
    size_t should;     /**< bytes of CARE_SHOULD that are kept, and what it takes to keep them */
};

/* ---- link_kept.c ---- */

/** @return the peer with that handle, or NULL: no frame went to it or came from it */
struct link_peer *link_peer_find(const struct link *link, uint32_t node);

/** The same, but makes it. @return NULL when out of memory */
struct link_peer *link_peer_at(struct link *link, uint32_t node);

/** Puts a frame's header at the beginning of @p out. @param number 0: in no order */
void link_put_header(const struct link *link, uint64_t number, struct wire_out *out);

/** Keeps a frame until it has arrived, and has its way take it. @param frame taken over */
void link_peer_keep(struct link_peer *peer, struct outgoing *frame);

/** @return the first frame of what is kept, taken out */
struct outgoing *link_peer_pop(struct link_peer *peer);

/** Frees what is kept. */
void link_peer_free_kept(struct link_peer *peer);

/** Frames go that way from now on, all that are kept once more. */
void link_peer_restart(struct link_peer *peer, bool direct);

/** Something has been acknowledged, or sent: more has to be in time. That a connection stands still
 * is noticed here, and the native way's back end looks after itself. */
void link_peer_await_progress(struct link_peer *peer);

/** Puts before a frame's type what was taken of the peer. @return false: there is nothing to say */
bool link_peer_put_taken(const struct link_peer *peer, struct wire_out *out);

/** That was said. */
void link_peer_told(struct link_peer *peer);

/** A frame came of it, or one that had waited was delivered: that is to be said. */
void link_peer_owes_ack(struct link_peer *peer);

/** Says now what is to be said at once. */
void link_peer_acknowledge(struct link_peer *peer);

/** The peer says what it has taken. @param hurry and that it leaves */
void link_peer_took(struct link_peer *peer, uint64_t taken, bool hurry);

/* ---- link_native.c ---- */

/** Keeps a frame in no order for the native way. @param frame taken over */
void link_peer_keep_loose(struct link_peer *peer, struct outgoing *frame);

/* ---- link_receive.c ---- */

void link_peer_free_window(struct link_peer *peer);
void link_free_strangers(struct link *link);
