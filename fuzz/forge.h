/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Frames in another server's name: of right shape, with small numbers, so that they fit to what
 * stands there and reach every state of the engine.
 */
#pragma once

#include "common/transport/wire.h"
#include "fuzz/fuzz.h"

/** The libpmix of all servers of a target, and the arity of one that lies. */
enum { FORGE_LIBRARY = 4 << 16 | 2 << 8 | 2 };

/** What the forged frames are about. */
struct forge {
    const char *id;              /**< the one group's */
    const struct wire_out *sigs; /**< signatures, one of which is chosen */
    uint32_t nsigs;
};

/** Appends the type and the body. @param type any byte: one that is not of the engine's frames has
 * a body that is any bytes */
void forge_frame(const struct forge *forge, struct fuzz_bytes *in, uint8_t type,
                 struct wire_out *out);
