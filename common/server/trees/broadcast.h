/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a server has to say to all servers of its step: that it has the step ended, events of all
 * processes, and that libpmix has ended a construct.
 *
 * A message goes along a k-ary tree of all servers whose root is the speaker. So the speaker sends
 * it to `tree_arity` servers, whatever the size of the step, and each of them passes it on to as
 * many. Messages of one speaker arrive in their order, each once.
 *
 * A server that is known to be lost, or to have left, is left out: those below it are told by the
 * server above it. A server may be lost before it has passed on what it has. So each server keeps
 * the last messages, and says them again to those below a server that turns out to be gone. What
 * they have had before they know by its number.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_BROADCAST_H
#define MUSTER_SERVER_BROADCAST_H

#include "common/tracker/values/tree.h"
#include "common/transport/wire.h"
#include "common/util/shared_bytes.h"

enum {
    BROADCAST_KEPT_MAX = 256,          /**< messages that are kept, of all speakers */
    BROADCAST_KEPT_BYTES = 1024 * 1024 /**< and their bytes, or the last one alone */
};

struct broadcast_env {
    void *arg;                    /**< handed to every function below */
    uint32_t self, nnodes, arity; /**< of the own step */
    bool (*is_lost)(void *arg, uint32_t node);
    /** Sends a FRAME_BROADCAST to a server of the own step; takes the bytes out of @p head.
     * @param message follows them; borrowed, to be held */
    void (*send)(void *arg, uint32_t node, struct wire_out *head, struct shared_bytes *message);
    /** Takes another server's message. @param message borrowed */
    void (*deliver)(void *arg, uint32_t speaker, const void *message, size_t len);
};

struct broadcasts;

/** @return NULL when out of memory; @p env is copied */
struct broadcasts *broadcast_new(const struct broadcast_env *env);

/** Says something to all other servers. @param message type byte and body of a frame; its bytes are
 * taken. What could not be written is not said */
void broadcast_say(struct broadcasts *broadcasts, struct wire_out *message);

/** Takes the body of a FRAME_BROADCAST of server @p from of the own step, and passes it on. */
void broadcast_receive(struct broadcasts *broadcasts, uint32_t from, const void *body, size_t len);

/** Server @p node of the own step is lost, or has left. */
void broadcast_lost(struct broadcasts *broadcasts, uint32_t node);

/** NULL is fine. */
void broadcast_free(struct broadcasts *broadcasts);

/** Visits the servers next below @p node in a tree, and in the place of one that is lost those
 * below that. */
void broadcast_below(const struct tree *tree, uint32_t node, void *arg,
                     bool (*is_lost)(void *arg, uint32_t node),
                     void (*visit)(void *arg, uint32_t node));

#endif
