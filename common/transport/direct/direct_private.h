/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the direct way. Private to direct.c and peers.c. @thread the loop's
 */
#ifndef MUSTER_TRANSPORT_DIRECT_DIRECT_PRIVATE_H
#define MUSTER_TRANSPORT_DIRECT_DIRECT_PRIVATE_H

#include "common/transport/direct/announce.h"
#include "common/transport/direct/direct.h"
#include "common/transport/direct/shake.h"
#include "common/transport/direct/stream.h"

#include <sys/queue.h>

/** What we know of how to reach a server:
 *
 *     UNKNOWN ── announcement ──► OPENING ── its key ──► KNOWN ── time to ──► CONNECTING
 *        ▲                          │                      ▲                     │
 *        └──────── not its ─────────┘                      └──── up, or failed ──┘
 */
enum way { WAY_UNKNOWN, WAY_OPENING, WAY_KNOWN, WAY_CONNECTING };

struct connection {
    TAILQ_ENTRY(connection) entry;
    struct peer *peer;
    struct stream *stream;
    bool ours;     /**< we have made it */
    int64_t since; /**< now_ms() */
};

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
    struct connection *current;              /**< by which frames go; NULL: natively */
    struct outgoing *waiting, **waiting_end; /**< owned: frames that wait for a connection */
    int64_t waits_since;                     /**< now_ms(), since when they do */
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
    struct timer delayed; /**< to connect to peers */
    struct timer patient; /**< at frames that wait */
    int64_t looked_at;    /**< now_ms(), when that last went, or was started */
    char instead[96];     /**< what messages do without a connection, a clause */
    bool hurry, closing;
    unsigned warned;       /**< lines about ways that failed */
    struct peer **buckets; /**< by node */
    uint32_t nbuckets, npeers;
    TAILQ_HEAD(connections, connection) connections;
    unsigned nconnections;
};

/** Whether nothing but announcements may go natively. */
static inline bool direct_is_required(const struct direct *direct)
{
    return direct->env.conf->mode == CONF_DIRECT_REQUIRE;
}

/* ---- waiting.c ---- */

enum { WAITING_LOOK_MS = 100 }; /**< between looks at what waits */

/** Keeps frames until a connection to the server is there. @param frames taken over, of any number;
 * freed if the server was given up, or this one ends */
void peer_wait(struct peer *peer, struct outgoing *frames);

/** Takes out what has waited. */
struct outgoing *peer_take_waiting(struct peer *peer);

/* ---- peers.c ---- */

/** @return the server, or NULL when it has not been dealt with */
struct peer *peer_find(const struct direct *direct, uint32_t node);

/** The same, but makes it. @return NULL when out of memory */
struct peer *peer_make(struct direct *direct, uint32_t node);

/** Whether frames can go to it directly. */
static inline bool peer_is_up(const struct peer *peer)
{
    return peer->current != NULL && stream_is_open(peer->current->stream);
}

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

/** Sends a frame the native way, which takes it in one piece, or drops it with a line where the
 * settings do not allow that. @param data taken over
 * @param body its end, borrowed; may be NULL */
void peer_send_natively(struct direct *direct, uint32_t node, void *data, size_t len,
                        const struct shared_bytes *body, enum frame_care care);

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

#endif
