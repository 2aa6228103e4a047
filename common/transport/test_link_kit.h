/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the link's tests share: two ends of a link, of which the test carries the bytes of one to
 * the other.
 */
#pragma once

#include "common/transport/link.h"
#include "common/util/test_cmocka.h"

#include <string.h>

enum { FRAMES = 3000, MANY = 1024, WINDOW_MAX = 1 << 20, STEP = 99 };

/** What the sender has sent natively, and what the receiver delivered. */
extern struct ends {
    struct link *sender, *receiver;
    void *bytes[FRAMES];
    size_t len[FRAMES];
    uint32_t nsent;
    uint32_t got[FRAMES], ngot;
} ends;

/** What a link's environment sends with natively, where @p arg is where the link is, and delivers
 * to; with others for other tests. A message is one frame, and counts as arrived at once. */
void keep(void *arg, uint32_t node);
void take(void *arg, uint32_t from, enum frame_type type, const void *body, size_t len,
          struct shared_bytes *whole);

/** Of a test: opens two ends of one step, sender 0 and receiver 1. */
int open_ends(void **state);
int close_ends(void **state);

/** Sends frames 0..n-1, each of which says its number. */
void send_frames(uint32_t n);
/** Brings the bytes of the send with that number to the receiver. */
void receive(uint32_t i);
/** Frames @p first and @p n - 1 more were delivered, in order. */
void assert_got(uint32_t first, uint32_t n);

#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)
