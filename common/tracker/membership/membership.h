/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Constructs whose participants are not all known from the start. The face of the engine's layer
 * "membership".
 *
 * An added member calls on its own server and waits there (member.c). The server that decides the
 * operation is the root of the leaders' rollup, or, for a bootstrap, the home of its id (home.c).
 * It gathers the rest in an assembly (assembly.c): once all leaders are there it claims the added
 * members from their servers (claims.c). Each of these says so when all of its own have called
 * (joins.c). In the end it tells the outcome to every server that no release reaches (outcome.c).
 */
#pragma once

#include "common/tracker/rollup/rollup.h"

TAILQ_HEAD(assembly_list, assembly);
TAILQ_HEAD(waiting_list, waiting);
TAILQ_HEAD(claim_list, claim);

/** What the layer keeps. */
struct membership {
    struct assembly_list assemblies;  /**< assembly.c: what is decided here */
    struct waiting_list joins, leads; /**< member.c, leader.c: local calls */
    struct claim_list claims;         /**< claims.c: members awaited here, and by which server */
};

/** Makes the layer's state ready. */
void membership_open(struct engine *engine, struct membership *membership);

/* outcome.c: to servers that no release reaches */

/** Sends a frame, also to ourselves: then the frame is taken before this returns. To no home yet:
 * not at all. */
void assembly_send(struct engine *engine, uint32_t node, struct wire_out *frame);
/** Sends an outcome. @param numbers of the receiver's calls as leaders
 * @param bytes of the release, borrowed; NULL: memory is out, and nothing is sent */
void outcome_send(struct engine *engine, uint32_t node, const uint64_t *numbers, uint32_t n,
                  struct shared_bytes *bytes);

/* assembly.c, joined.c: at the server that decides */

/** Whether all of a rollup's added members have joined; claims them when that was not done yet.
 * @param status set when it fails; then true is returned
 * @return false: they are awaited; @p t may be gone */
bool assembly_ready(struct engine *engine, struct tracker *t, int32_t *status);
/** Takes the assembly from the rollup, which ends. A failed one has one now when a member is known
 * to be added. See engine_hooks::detach. */
void assembly_detach(struct engine *engine, struct tracker *t, bool fails,
                     struct rollup_more *more);
/** An operation with an assembly is decided: tells servers, takes the local calls that it ends, and
 * frees the assembly. See engine_hooks::told. */
void assembly_told(struct engine *engine, struct tracker *t, struct assembly *a, struct decided *d,
                   struct tracker_release *release, struct engine_call **ended);
/** Writes which members are missing. */
void assembly_missing(struct engine *engine, const struct assembly *a, char *buf, size_t cap);
/** Takes a FRAME_JOINED. */
void assembly_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
void assembly_lost(struct engine *engine, uint32_t node);
void assembly_close(struct engine *engine);

/* home.c, leader.c: a bootstrap */

/** Takes a FRAME_LEAD. */
void home_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
void leader_lost(struct engine *engine, uint32_t node);
void leader_close(struct engine *engine);

/* claims.c, member.c: at the members' own servers */

/** Takes the calls that an operation's release ends. */
void member_take(struct engine *engine, struct tracker *t, const struct tracker_release *release,
                 struct engine_call **ended);
/** Takes a FRAME_CLAIM. */
void claim_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** Takes a FRAME_OUTCOME. */
void outcome_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** A server is lost that decides: ends its claims, or asks others for the outcome. */
void claim_lost(struct engine *engine, uint32_t node);
/** A participant here has ended. */
void claim_local_loss(struct engine *engine);
/** Forgets the successes that processes of a namespace took part in, or that went on without such.
 */
void claim_forget(struct engine *engine, const char *nspace);
void member_close(struct engine *engine);
