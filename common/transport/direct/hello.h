/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How two servers get to know each other on a new connection: challenge, hello, welcome.
 * docs/wire.md draws it. Nothing here touches a socket.
 *
 * The acceptor's key, which only servers of its user know, proves both of them to each other. The
 * keys of the connection follow from it and from a key pair of each end that is made for this
 * connection alone (seal.h). So what was said on another connection is worth nothing on this one,
 * and whoever learns the acceptor's key later cannot decipher what was said before.
 * @thread the loop's
 */
#pragma once

#include "common/transport/seal/seal.h"

#include <stdint.h>

enum {
    CHALLENGE_BYTES = 32,
    HELLO_BYTES = 20 + SEAL_POINT + SEAL_PROOF,
    WELCOME_BYTES = SEAL_POINT + SEAL_PROOF,
};

/** What identifies a server to others of its step. */
struct identity {
    const struct seal_ops *seal;    /**< borrowed for ever */
    uint64_t step;                  /**< the hash by which frames name the step and its run */
    uint32_t self;                  /**< its node's index */
    unsigned char key[SEAL_SECRET]; /**< lets a server connect; it is in our announcement */
};

/** What both ends have said, on which their proofs and keys depend. */
struct talk {
    unsigned char challenge[CHALLENGE_BYTES];
    unsigned char hello[HELLO_BYTES];
    unsigned char welcome[WELCOME_BYTES];
};

/** Answers the challenge of server @p to, whose key is @p key. @return this end of the connection
 * to come, or NULL: libcrypto fails */
struct seal *hello_write(const struct identity *own, uint32_t to,
                         const unsigned char key[SEAL_SECRET], struct talk *talk);

/** Checks the answer to our own challenge. @return whether it is that of a server of our step which
 * knows our key; @p from is its node then */
bool hello_read(const struct identity *own, const struct talk *talk, uint32_t *from);

/** The acceptor proves that it knows its key. @return this end of the connection, or NULL */
struct seal *welcome_write(const struct identity *own, struct talk *talk);

/** @param seal what hello_write() has returned @return whether the acceptor has proved it; then
 * @p seal can be used */
bool welcome_read(const struct identity *own, const unsigned char key[SEAL_SECRET],
                  const struct talk *talk, struct seal *seal);

/** Proves of @p data that its writer knows @p key. @param use what for: no proof is one for another
 * use @param proof SEAL_PROOF bytes @return false: memory is out, or libcrypto fails */
bool identity_prove(const struct identity *own, const unsigned char key[SEAL_SECRET],
                    const char *use, const void *data, size_t len, unsigned char *proof);
