/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Frames between servers of one process, for tests that have one after another of them arrive.
 */
#ifndef MUSTER_SERVER_TEST_FRAMES_H
#define MUSTER_SERVER_TEST_FRAMES_H

#include "common/transport/wire.h"

/** One that was sent. */
struct test_frame {
    uint32_t from, to;
    void *data; /**< with the type byte, owned; NULL: it was taken */
    size_t len;
};

/** All that were sent, the oldest first. */
extern struct test_frame *frames;
extern uint32_t nframes;

/** Begins without frames, and with a log that is dropped. */
void frames_open(void);

/** Sends one. @param out its bytes are taken */
void frames_send(uint32_t from, uint32_t to, struct wire_out *out);

/** Takes the oldest one that was not taken. @return false: there is none */
bool frames_take(struct test_frame *frame);

/** Takes the one at @p at out of those that were sent. */
struct test_frame frames_remove(uint32_t at);

/** Frees all. */
void frames_close(void);

#endif
