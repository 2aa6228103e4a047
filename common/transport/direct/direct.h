/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Direct connections between servers of a step, over TCP: beneath the link, beside the resource
 * manager's own way, the native one. The face of this folder; from bottom to top it is
 * addresses, record and hello, announce, vouch, stream, shake and callers, peers, direct.
 *
 * The first bytes to a server go the native way, behind an announcement: where this server listens,
 * and its key. The server that holds an announcement connects, and from then on frames go directly.
 * Connections take frames from the link, which keeps them until they are acknowledged. Whatever
 * goes wrong with a connection, the link is told, and has frames go by another one, or natively.
 *
 * Where the settings require direct connections, frames stay with the link meanwhile, and only
 * announcements go natively. A server that none can be made to counts as lost.
 *
 * Whether a server has left or is lost only the resource manager's way decides otherwise. What is
 * learnt here of a server, that it is there, is handed to the back end.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/conf/conf.h"
#include "common/transport/direct/sockets.h"
#include "common/transport/direct/vouch.h"
#include "common/transport/link.h"
#include "common/transport/seal/seal.h"
#include "common/util/err.h"
#include "common/util/timers.h"

#include <event2/event.h>

struct direct;

struct direct_env {
    void *arg;
    uint32_t self;
    uint64_t step; /**< the hash by which frames name the step and its run */
    const struct conf_direct *conf;
    unsigned connections;          /**< how many there may be at a time */
    const struct vouch_ops *ops;   /**< NULL: no other user can read what goes natively */
    const struct sockets *sockets; /**< NULL: the kernel's */
    /** Loads what encrypts connections: see seal/load.h. */
    const struct seal_ops *(*seal)(struct err *err);
    struct event_base *base;
    struct timers *timers;
    /** Runs the loop until something has happened. @param ms the most
     * @return whether the loop can go on */
    bool (*turn)(void *arg, int64_t ms);
    struct link *link; /**< borrowed: gives frames, and takes them */
    /** Of CONF_DIRECT_REQUIRE: frames to a server have waited for so many ms for a connection.
     * direct_forget() and link_forget() are expected. @param why a clause, borrowed */
    void (*unreachable)(void *arg, uint32_t node, const char *why);
    int64_t patience;
    /** A server is there. */
    void (*heard)(void *arg, uint32_t node);
    /** What to call a server, and the native way, in messages. */
    const char *(*name)(void *arg, uint32_t node);
    const char *native_name;
};

/** Begins to listen. @return NULL: there are no direct connections, and @p err says why unless that
 * is what the settings say */
struct direct *direct_open(const struct direct_env *env, struct err *err);

/** A frame is to go to a server: it is connected to, if that can be done now.
 * @param direct may be NULL
 * @return whether a connection takes it by link_next(), now or later */
bool direct_connect(struct direct *direct, uint32_t node);

/** There is something for the connection to a server, if there is one. @param direct may be NULL */
void direct_ready(struct direct *direct, uint32_t node);

/** A server acknowledges nothing: its connection is cut. @param direct may be NULL */
void direct_stuck(struct direct *direct, uint32_t node);

/** Takes the body of a FRAME_ANNOUNCE of server @p from. @param direct may be NULL */
void direct_announced(struct direct *direct, uint32_t from, const void *body, size_t len);

/** A server was given up: it has no connections any more. link_forget() comes next. @param direct
 * may be NULL */
void direct_forget(struct direct *direct, uint32_t node);

/** @param direct may be NULL @return whether frames go to it directly */
bool direct_is_up(const struct direct *direct, uint32_t node);

/** This server is about to leave. It connects to none any more, because they may have left.
 * @param direct may be NULL */
void direct_hurry(struct direct *direct);

/** Ends all connections in order, when all is acknowledged, or after @p ms milliseconds, in which
 * it runs the loop; what is not acknowledged goes natively. @param direct may be NULL */
void direct_close(struct direct *direct, unsigned ms);
