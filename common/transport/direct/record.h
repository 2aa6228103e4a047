/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What two servers say to each other on a direct connection: challenge, hello, welcome, and then
 * records in both directions. docs/wire.md draws it. Nothing here touches a socket.
 *
 * The acceptor's key, which only servers of its user know, makes the session: both ends mix it with
 * a random number of either end. So a process that does not know the key can neither say hello nor
 * welcome, and what was said on another connection is worth nothing on this one.
 *
 * A record's body is hashed with a key that its sender has for all of its connections, and the head
 * holds that digest; the head's tag is the session's own. So what goes to many servers is hashed
 * once. The head is checked before its length is believed.
 * @thread the loop's
 */
#ifndef MUSTER_TRANSPORT_DIRECT_RECORD_H
#define MUSTER_TRANSPORT_DIRECT_RECORD_H

#include "common/transport/direct/mac.h"

#include <stdint.h>

enum {
    CHALLENGE_BYTES = 16,
    HELLO_BYTES = 68,
    WELCOME_BYTES = 32,
    RECORD_HEAD = 52,
    RECORD_MAX = 1 << 30, /**< bytes of a body */
};

/** What identifies a server to others of its step. */
struct identity {
    uint64_t step;               /**< the hash by which frames name the step and its run */
    uint32_t self;               /**< its node's index */
    unsigned char key[MAC_KEY];  /**< lets a server connect; it is in our announcement */
    unsigned char body[MAC_KEY]; /**< hashes the bodies of records that we send */
};

/** The keys of one connection, and how many records have gone over it. */
struct session {
    unsigned char out[MAC_KEY], in[MAC_KEY];           /**< tag heads */
    unsigned char body_in[MAC_KEY];                    /**< hashes the bodies that the peer sends */
    unsigned char mask_out[MAC_KEY], mask_in[MAC_KEY]; /**< hide the keys of bodies under way */
    uint64_t nout, nin;
};

enum record_kind {
    RECORD_DATA = 1, /**< frames for the link */
    RECORD_ACK,      /**< says only what was taken */
    RECORD_BYE,      /**< no DATA comes after it */
    RECORD_KINDS,
};

/** A record's head. */
struct record {
    uint32_t len;    /**< bytes of the body */
    uint32_t shared; /**< the last so many of them were hashed by themselves */
    enum record_kind kind;
    bool hurry;     /**< the receiver is to say at once what it has taken */
    uint64_t taken; /**< DATA records that the sender has taken */
    unsigned char digest[MAC_TAG];
};

/** Answers the challenge of server @p to, whose key is @p key. @return false: no random number can
 * be had */
bool hello_write(const struct identity *own, uint32_t to, const unsigned char key[MAC_KEY],
                 const unsigned char challenge[CHALLENGE_BYTES], unsigned char hello[HELLO_BYTES],
                 struct session *session);

/** Checks the answer to our own challenge. @return whether it is that of a server of our step which
 * knows our key; @p from is its node then */
bool hello_read(const struct identity *own, const unsigned char challenge[CHALLENGE_BYTES],
                const unsigned char hello[HELLO_BYTES], uint32_t *from, struct session *session);

/** The acceptor proves that it knows its key. */
void welcome_write(const struct identity *own, const struct session *session,
                   unsigned char welcome[WELCOME_BYTES]);

/** @return whether the acceptor has proved it */
bool welcome_read(struct session *session, const unsigned char welcome[WELCOME_BYTES]);

/** The digest of a body in two parts. @param shared its last @p nshared bytes; NULL for none
 * @param of_shared the tag of these, where the caller has it already, or NULL */
void record_digest(const unsigned char key[MAC_KEY], const void *first, size_t nfirst,
                   const void *shared, size_t nshared, const unsigned char *of_shared,
                   unsigned char digest[MAC_TAG]);

/** Writes the head of the next record, digest included. */
void record_seal(struct session *session, const struct record *record,
                 unsigned char head[RECORD_HEAD]);

/** Reads the head of the next record. @return false: the peer has not written it */
bool record_open(struct session *session, const unsigned char head[RECORD_HEAD],
                 struct record *record);

/** @return whether the head was written for that body */
bool record_fits(const struct session *session, const struct record *record, const void *body);

#endif
