/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of connections whose ends do not know each other yet. Private to shake.c and callers.c.
 * @thread the loop's
 */
#pragma once

#include "common/transport/direct/shake.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/queue.h>

enum attempt_state { ATTEMPT_CONNECTING, ATTEMPT_CHALLENGE, ATTEMPT_WELCOME };

/** A connection that this server makes. */
struct attempt {
    LIST_ENTRY(attempt) entry;
    struct shakes *shakes;
    enum attempt_state state;
    uint32_t node;
    struct addresses addresses;
    uint32_t next; /**< of them that is tried when this one fails */
    uint16_t port;
    unsigned char key[SEAL_SECRET];
    int fd;
    struct event *event;
    struct timer late;
    struct talk talk;
    size_t got;        /**< bytes of what is awaited */
    struct seal *seal; /**< owned, from the hello on */
};

/** A connection that an unknown process has made to this server. */
struct stranger {
    TAILQ_ENTRY(stranger) entry;
    struct shakes *shakes;
    int fd;
    struct event *event;
    struct timer late;
    struct address address;
    struct talk talk;
    size_t got; /**< bytes of its hello */
};

struct shakes {
    struct shake_env env;
    LIST_HEAD(, attempt) attempts;
    struct event *listen;
    struct timer pause; /**< no descriptor is left: the listener rests until then */
    TAILQ_HEAD(strangers, stranger) strangers; /**< the oldest first */
    unsigned nstrangers;
    bool told; /**< that a stranger was refused */
};

/** Begins to listen. @return false: out of memory */
bool callers_open(struct shakes *shakes);
void callers_close(struct shakes *shakes);
