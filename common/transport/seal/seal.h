/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A sealed connection: what two ends say to each other once each has the other's public point, so
 * that nobody between them can read, change, repeat or leave out a record. Servers speak so with
 * each other (direct/), and with srun's agent.
 *
 * All of it is libcrypto's: key agreement by ECDH on the curve P-256, keys by HKDF with SHA-256,
 * and AES-256-GCM for the records, all of which a FIPS provider has. Both ends make a key pair for
 * this connection alone. A point does not say whose it is. So the user of this file has something
 * vouch for the other end's point, and then gives the point to seal_ops::agree.
 *
 * A record is u32 length of the body, the body as AES-256-GCM encrypts it, and its tag of 16 bytes.
 * The nonce is the number of the record in its direction, from 0, in 12 bytes; the length is
 * authenticated, too. Integers are big-endian. A key seals 2^32 records at most. With records of up
 * to 64 KiB an attacker then tells the sealed bytes from random ones with a chance of 2^-41.
 *
 * libcrypto is large, and a step of one node hardly needs it. So this is a shared object of its
 * own, seal.so, which its users load when they first need it (load.h). It needs nothing of muster.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

enum {
    SEAL_POINT = 65,  /**< bytes of a public point, uncompressed */
    SEAL_PROOF = 32,  /**< bytes of a proof */
    SEAL_SECRET = 32, /**< bytes of a key, or of a secret, that random() makes */
    SEAL_HEAD = 4,    /**< bytes of a record before its body */
    SEAL_TAG = 16,    /**< and behind it */
};

/** The one end of a connection, and the other. */
enum seal_side { SEAL_CALLER, SEAL_ACCEPTOR };

/** One end of a sealed connection; not shared by threads. */
struct seal;

/** A record in a buffer. */
struct seal_record {
    const unsigned char *body; /**< deciphered, in the buffer that was given */
    size_t body_len;
    size_t len; /**< of the whole record */
    bool apart; /**< the end of the body is where seal_place says, and not behind its beginning */
};

/** Where the end of a body is to be deciphered to. */
struct seal_place {
    size_t skip; /**< the body's bytes before it, which stay in the buffer */
    void *to;    /**< outside of the buffer */
    size_t room; /**< bytes; where they are too few, all of the body stays in the buffer */
};

/** What seal.so exports, as `muster_seal`. @thread any */
struct seal_ops {
    /** @param point the public point of the new end @return NULL: libcrypto cannot */
    struct seal *(*create)(unsigned char point[SEAL_POINT]);

    /** Agrees on the keys. @param theirs the other end's point, which something vouches for
     * @param secret what else both know @param about what this connection is for, the same on both
     * ends: both points belong to it @return false: that is no point */
    bool (*agree)(struct seal *seal, enum seal_side side, const unsigned char theirs[SEAL_POINT],
                  const void *secret, size_t secret_len, const void *about, size_t about_len);

    /** Makes an end of what goes one way, by a key that its receivers are told otherwise, and that
     * is for nothing else. @param side SEAL_CALLER writes, SEAL_ACCEPTOR reads @return NULL:
     * libcrypto cannot */
    struct seal *(*with_key)(const unsigned char key[SEAL_SECRET], enum seal_side side);

    /** Writes a record: SEAL_HEAD bytes, the body, which is @p n parts one after another, and
     * SEAL_TAG bytes. @return false: libcrypto cannot, or 2^32 records were written */
    bool (*write)(struct seal *seal, const struct iovec *parts, int n, unsigned char *record);

    /** Reads the record that @p data begins with, and deciphers it there. @param max bytes of a
     * body @param place NULL: all of the body stays there @return 1; 0 when the record is not whole
     * yet; -1 when it is not what the other end has written next, and the connection is of no more
     * use */
    int (*read)(struct seal *seal, unsigned char *data, size_t len, size_t max,
                const struct seal_place *place, struct seal_record *record);

    /** @param seal may be NULL */
    void (*destroy)(struct seal *seal);

    /** Fills @p bytes with random ones. @return false: libcrypto has none */
    bool (*random)(void *bytes, size_t len);

    /** Proves that its maker knows @p secret: HMAC with SHA-256. */
    bool (*prove)(const void *secret, size_t secret_len, const void *data, size_t len,
                  unsigned char proof[SEAL_PROOF]);

    /** @return whether both are the same, in a time that does not say where they differ */
    bool (*is_same)(const void *one, const void *other, size_t len);
};
