/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What is in the records that two servers say to each other once a connection is up (seal.h): parts
 * of frames, the first one of each behind a head. docs/wire.md draws it. Nothing here touches a
 * socket.
 *
 * A frame is cut into parts, so that a receiver deciphers one part while the next one is on its
 * way, and takes memory for a frame only when its sender, and nobody else, has said how long it is.
 *
 * The end of a frame that goes to several servers is encrypted once for all of them, by a key that
 * is made for it alone. The first record of the frame tells that key.
 * @thread any
 */
#pragma once

#include "common/transport/seal/seal.h"

#include <stdint.h>

enum {
    RECORD_HEAD = 8,
    RECORD_PART = 32 << 10, /**< bytes of a frame, at most */
    RECORD_BYTES = SEAL_HEAD + RECORD_HEAD + RECORD_PART + SEAL_TAG /**< a record, at most */
};

/** Bytes of a frame, at most. */
#define RECORD_MAX (UINT32_MAX - 1)

/** The head of a frame's first record. */
struct record {
    uint32_t whole; /**< bytes of the frame; 0: BYE, the connection ends in order */
    uint32_t apart; /**< so many of them, at its end, come by a key of their own, which is ahead of
                         the others; else 0 */
};

/** @return how much of a frame, or of its end that comes apart, the next record has when @p left
 * bytes of it are left: the first one has so much that all others are full */
size_t record_part(size_t left);

void record_write(const struct record *record, unsigned char head[RECORD_HEAD]);

/** Reads a head. @param part bytes behind it @return whether it makes sense */
bool record_read(const unsigned char head[RECORD_HEAD], size_t part, struct record *record);
