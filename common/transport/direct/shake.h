/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Connections until both ends know each other: connections that this server makes, and those of
 * strangers.
 *
 * A stranger costs one descriptor and some hundred bytes, for at most two seconds; so many are let
 * in at once, fewer of one address, and the oldest makes room. Where the kernel can say so, on the
 * loopback interface, other users are refused at once.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/transport/direct/addresses.h"
#include "common/transport/direct/hello.h"
#include "common/transport/direct/sockets.h"
#include "common/util/timers.h"

#include <event2/event.h>

struct shakes;

/** Where connections go. */
struct shake_env {
    void *arg;
    struct event_base *base;
    struct timers *timers;
    const struct identity *own;
    const struct sockets *sockets;
    const struct addresses *addresses; /**< our own, as they are announced */
    int listener;                      /**< taken over */
    /** Both ends know each other. @param fd,seal the receiver's now @param ours whether we made it
     */
    void (*up)(void *arg, uint32_t node, int fd, struct seal *seal, bool ours);
    /** A connection that we make has failed. @param why one clause, borrowed */
    void (*failed)(void *arg, uint32_t node, const char *why);
};

/** @return NULL when out of memory */
struct shakes *shakes_new(const struct shake_env *env);

/**
 * Connects to a server. up() or failed() is called for it later, and there must be none under way.
 * @param addresses tried one after another; borrowed
 * @param key the server's
 */
void shakes_connect(struct shakes *shakes, uint32_t node, const struct addresses *addresses,
                    uint16_t port, const unsigned char key[SEAL_SECRET]);

/** Gives up the connection to a server that is under way, if there is one; nothing is called. */
void shakes_give_up(struct shakes *shakes, uint32_t node);

/** Takes no connection any more, and makes none. */
void shakes_close(struct shakes *shakes);
