/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers that keep results back before they are lost, for the tests of who learns them all the
 * same: seven on a loopback, in binary trees.
 */
#pragma once

#include "common/tracker/test_kit.h"

enum { N = 7, LONG_MS = 3600000 };

/** Which results are lost, by server and receiver, and which server is killed for it. */
struct silence {
    uint32_t by;
    bool release[N][N], outcome[N][N];
    uint32_t held_to; /**< the last release to it that was lost */
    bool keep[N];     /**< the last contribution of these servers is held, too, and not lost */
    unsigned char held[4096];
    size_t len;
};

extern struct silence silence;

/** @return the loopback of these tests, with nothing kept back yet */
struct loopback_conf silent_net(void);

/** @return a kit on it */
struct kit *silent_kit(void);

/** A server between the root and others, silence.by, keeps back what it hears. @param op set to a
 * construct of all */
struct kit *silent_between(struct kit_op **op);

/** Kills the server that was silent, after what it said has arrived. */
void end_silence(struct loopback *net);
