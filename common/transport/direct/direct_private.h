/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the direct way. Private to direct.c and peers.c. @thread the loop's
 */
#pragma once

#include "common/transport/direct/announce.h"
#include "common/transport/direct/direct.h"
#include "common/transport/direct/shake.h"
#include "common/transport/direct/stream.h"

/** What we know of how to reach a server:
 *
 *     UNKNOWN ── announcement ──► OPENING ── its key ──► KNOWN ── time to ──► CONNECTING
 *        ▲                          │                      ▲                     │
 *        └──────── not its ─────────┘                      └──── up, or failed ──┘
 */
enum way { WAY_UNKNOWN, WAY_OPENING, WAY_KNOWN, WAY_CONNECTING };

/** A server that something went to or came from. */
struct peer {
    struct peer *next; /**< in its bucket */
    struct direct *direct;
    uint32_t node;
    enum way way;
    struct addresses addresses;
    uint16_t port;
    unsigned char key[SEAL_SECRET];
    unsigned char proof[SEAL_PROOF]; /**< of the announcement that all this is from */
    unsigned char *said;             /**< owned: the announcement that is being opened */
    size_t said_len;
    struct stream *stream; /**< owned: by which frames go; NULL: natively */
    bool ours;             /**< we have connected */
    int64_t since;         /**< now_ms(), when that was */
    int64_t waits_since;   /**< now_ms(), since when frames wait for one; 0: none does */
    char *why; /**< owned: why the last connection, or try, has failed; NULL: none has */
    bool lost;
    bool was_up;
    bool has_failed;  /**< once, and there was no connection since */
    bool wants;       /**< our announcement, when the credential is there */
    int64_t told_at;  /**< when that last went to it, now_ms(); 0: never */
    int64_t again_at; /**< not before that it is connected to */
    unsigned backoff; /**< ms */
};

struct direct {
    struct direct_env env;
    struct identity own;
    struct addresses addresses; /**< our own */
    uint16_t port;
    struct voucher *voucher;    /**< NULL: no credentials are needed */
    struct wire_out credential; /**< empty: there is none yet */
    int64_t sealed_at;          /**< now_ms(); 0: never */
    bool sealing, stuck;
    struct shakes *shakes;
    struct stream_env streams;
    unsigned char *room;  /**< STREAM_ROOM bytes to read to, and as many to write from */
    struct timer look;    /**< at the voucher */
    struct timer patient; /**< at frames that wait */
    int64_t looked_at;    /**< now_ms(), when that last went, or was started */
    char instead[96];     /**< what messages do without a connection, a clause */
    bool hurry, closing;
    unsigned warned;       /**< lines about ways that failed */
    struct peer **buckets; /**< by node */
    uint32_t nbuckets, npeers;
    unsigned nconnections;
};

/** Whether nothing but announcements may go natively. */
static inline bool direct_is_required(const struct direct *direct)
{
    return direct->env.conf->mode == CONF_DIRECT_REQUIRE;
}

enum { WAITING_LOOK_MS = 100 }; /**< between looks at servers that frames wait for */

/** @return the server after @p peer, or the first one for NULL; NULL: there is none any more */
static inline struct peer *peers_next(const struct direct *direct, const struct peer *peer)
{
    uint32_t i = peer != NULL ? peer->node % direct->nbuckets : 0;
    struct peer *next = peer != NULL            ? peer->next
                        : direct->nbuckets == 0 ? NULL
                                                : direct->buckets[0];
    while (next == NULL && ++i < direct->nbuckets)
        next = direct->buckets[i];
    return next;
}

/* ---- peers.c ---- */

/** @return the server, or NULL when it has not been dealt with */
struct peer *peer_find(const struct direct *direct, uint32_t node);

/** The same, but makes it. @return NULL when out of memory */
struct peer *peer_make(struct direct *direct, uint32_t node);

/** Whether frames can go to it directly. */
static inline bool peer_is_up(const struct peer *peer)
{
    return peer->stream != NULL && stream_is_open(peer->stream);
}

/** Whether it has not acknowledged all of what it was sent by connections. */
static inline bool peer_is_owed(const struct peer *peer)
{
    return link_owed(peer->direct->env.link, peer->node).frames > 0;
}

/** Frames to it wait for a connection. */
void peer_wait(struct peer *peer);

/** Connects to it if there is a way, no other connection, and it is time. */
void peer_connect(struct peer *peer, int64_t now);

/** A connection is ready; of struct shake_env. */
void peer_up(void *arg, uint32_t node, int fd, struct seal *seal, bool ours);
/** One that we wanted is not. */
void peer_failed(void *arg, uint32_t node, const char *why);
/** One has ended; of struct stream_env. */
void peer_ended(void *arg, struct stream *stream, const char *why);

/** Says once that there is no direct way to it, and why. @param ends it seems to have ended, which
 * is no warning */
void peer_tell(struct peer *peer, bool ends, const char *why);

void peers_free(struct direct *direct);

/* ---- introduce.c ---- */

enum { DIRECT_STUCK_MS = 3000 }; /**< a credential takes a millisecond */

/** Has the credential made. */
void direct_seal(struct direct *direct);

/** Our credential is there. @param credential borrowed; NULL: none can be made */
void direct_sealed(struct direct *direct, const void *credential, size_t len);

/** Tells a server natively where we are, unless that was done just now; once the credential is
 * there. */
void direct_announce(struct peer *peer, int64_t now);
