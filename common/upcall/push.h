/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * PMIx_IOF_push: what processes of this node push to the standard input of processes that a process
 * of this node has spawned with PMIX_FWD_STDIN. The servers of these write it
 * (server/spawned/inputs.h).
 *
 *     PMIx_Spawn with PMIX_FWD_STDIN ── inlet_new()
 *       │ the call was answered: inlet_open()
 *     PMIx_IOF_push ── upcall: copies, posts; loop: behind earlier pushes
 *       │ the first one goes, a piece at a time: ASK_INPUT, to one server, or to all of the spawned
 *       │ step; answered when they have taken the last piece
 *     the process that has spawned is gone ── the end of file goes behind what was pushed
 *     this server is told to leave ── it stays for a while until all that has arrived (leave.c)
 *     the spawned step is gone ── what waits is answered, and the inlet freed
 *
 * libpmix up to 6.1 reads a tool's standard input (PMIX_IOF_PUSH_STDIN) without waiting for
 * answers. So what waits is bounded: a push that does not fit into PUSH_BYTES is refused, and so is
 * all that follows, lest the process reads a file with a hole. The end of file comes then only when
 * the process that has spawned is gone.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/server/server.h"

#include <pmix_server.h>

enum {
    PUSH_BYTES = 8 << 20,  /**< that wait for one spawned step, at most */
    PUSH_OVERHEAD = 512,   /**< that each push counts besides its bytes */
    PUSH_TARGETS_MAX = 64, /**< processes that one call names */
};

struct inlet;

/** A process spawns others that take input. @param rank of the process that takes input, or
 * PMIX_RANK_WILDCARD: all */
struct inlet *inlet_new(struct server *server, const pmix_proc_t *parent, uint32_t rank);

/** The spawn was answered. @param nspace the spawned one */
void inlet_open(struct inlet *inlet, const char *nspace);

/** The spawn has failed. */
void inlet_drop(struct inlet *inlet);

/** A process or tool has finalized, or is lost. */
void pushes_parent_gone(struct server *server, const char *nspace, uint32_t rank);

/** The servers of a namespace are gone. */
void pushes_nspace_ended(struct server *server, const char *nspace);

/** Whether something that was pushed, or the end of file behind it, has not arrived yet.
 * @param tell for each spawned step a line, as this is given up */
bool pushes_wait(const struct server *server, bool tell);

/** @thread the loop's, after libpmix has ended and all questions were answered */
void pushes_free(struct server *server);
