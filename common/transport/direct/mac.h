/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A keyed hash of bytes: SipHash-2-4 with 128 bits. A process that lacks the key can neither make
 * nor guess a tag, nor find two texts that have the same one.
 * @thread any
 */
#ifndef MUSTER_TRANSPORT_DIRECT_MAC_H
#define MUSTER_TRANSPORT_DIRECT_MAC_H

#include <stdbool.h>
#include <stddef.h>

enum {
    MAC_KEY = 16,
    MAC_TAG = 16,       /**< bytes */
    MAC_LONG = 4 << 10, /**< from so many bytes on mac_of_body() hashes blocks first */
};

/** Hashes @p len bytes. @param data borrowed; NULL when @p len is 0 */
void mac_of(const unsigned char key[MAC_KEY], const void *data, size_t len,
            unsigned char tag[MAC_TAG]);

/** The same for bodies, of which long ones are hashed faster and by another rule (docs/wire.md). */
void mac_of_body(const unsigned char key[MAC_KEY], const void *data, size_t len,
                 unsigned char tag[MAC_TAG]);

/** @return whether two tags are the same; how long it takes does not tell where they differ */
bool mac_same(const unsigned char a[MAC_TAG], const unsigned char b[MAC_TAG]);

/** Fills @p bytes with random ones. @return false: the kernel gives none */
bool mac_random(void *bytes, size_t len);

#endif
