/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What servers, their brokers' modules and other brokers' modules say to each other. All of it is
 * raw payload of Flux's messages, written and read with wire.h; PACKET_VERSION stands first in what
 * may meet a module of another build.
 *
 *     server → module   muster.register   PACKET_VERSION, u64 job, u32 node, u32 nodes,
 *                                         u32 broker rank of each node; a streaming request
 *                       muster.find       u64 job, u64 another job; the answer: u32 broker rank of
 *                                         each node of that
 *                       muster.meet       u64 job; the answer: u64 job, u32 node, u32 nodes of
 *                                         the server to meet at
 *                       muster.took       u64 job, u64 ticket, of the last one that was taken; has
 *                                         no answer
 *                       muster.leave      u64 job, u32 and the broker ranks of servers that it has
 *                                         reached; has no answer
 *                       muster.state      u64 job, what rm_host.state says, up to PACKET_STATE_MAX
 *                                         bytes; has no answer, and counts once after PACKET_STATE
 *     module → server   responses to muster.register, each beginning with u8 enum packet_kind
 *     server → module of the receiver's broker
 *                       muster.send       PACKET_VERSION, u64 job, u32 node and u32 broker rank of
 *                                         the sender; u64 job and u32 node of the receiver, the
 *                                         bytes; ESHUTDOWN if the receiver has left
 *     module → module   muster.gone       PACKET_VERSION, u64 job, u32 owner's uid, u32 node or
 *                                         PACKET_ALL_NODES, u8 enum packet_loss; has no answer
 *                       muster.home       to rank 0: PACKET_VERSION, u32 owner's uid; u64 job,
 *                                         u32 node, u32 nodes and u32 broker rank of the server
 *                                         that asks; the answer: as of muster.meet
 *
 * muster.send is answered when its server has said by muster.took to have it. Of several messages
 * of one sender only the last is answered then, for all of them. A server says so when nothing has
 * come for PACKET_TOOK_MS, or PACKET_TOOK_MAX_MS after the first, or when it has
 * PACKET_WINDOW_MESSAGES messages or PACKET_WINDOW_BYTES bytes: as much as one server has under way
 * to another before it waits for an answer. So answers are few, and no window that is full waits
 * for the time to pass.
 */
#pragma once

#include "common/transport/wire.h"

enum {
    PACKET_VERSION = 6,
    PACKET_ALL_NODES = 0xffffffff,
    PACKET_WINDOW_MESSAGES = 16,
    PACKET_WINDOW_BYTES = 256 << 10, /**< before the last one of them, which may be longer */
    PACKET_TOOK_MS = 5,
    PACKET_TOOK_MAX_MS = 50,
    PACKET_STATE_MAX = 64 << 10,
};

/** What a response to muster.register is. */
enum packet_kind {
    PACKET_WELCOME = 0, /**< it was accepted; u32 0 or nodes, for each of them u32 the node above it
                             in the overlay or PACKET_ALL_NODES */
    PACKET_BYTES = 1,   /**< u64 ticket for muster.took, the bytes */
    PACKET_GONE = 2,    /**< u64 job, u32 node or PACKET_ALL_NODES, u8 enum packet_loss */
    PACKET_OFFLINE = 3, /**< u32 rank of a broker that is lost, and its servers with it */
    PACKET_STATE = 4,   /**< no more: muster.state is to come; an older server does not know it, and
                             says nothing */
};

/** Why a server is gone. */
enum packet_loss {
    PACKET_LEFT = 0, /**< it said muster.leave, or its job has ended */
    PACKET_DIED = 1, /**< its connection to the broker closed */
};

/** @return the rest of what @p in reads, with its length, and moves to the end */
static inline const void *packet_rest(struct wire_in *in, size_t *len)
{
    const unsigned char *rest = in->p;
    *len = in->bad ? 0 : (size_t)(in->end - in->p);
    in->p = in->end;
    return rest;
}
