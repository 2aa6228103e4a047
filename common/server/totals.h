/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The line at the end of a step that says how long its operations have waited, and which node came
 * last: with "stats" in muster.json, or MUSTER_STATS=1. With MUSTER_TRACE it says where the traces
 * are (trace.h), and as what has started the step waits for the line, they are there by then. So
 * are the counts that are kept (totals_keep.h).
 *
 * Each server that leaves hands what it has counted, and what others have handed to it, to its heir
 * (view_heir()), ahead of its wish to leave. So the server that speaks for all that leave has it
 * all.
 *
 *     STATS   u32 servers, u32 of them that have written a trace, and what they have counted:
 *             tally_write()
 * @thread the loop's, all of it
 */
#pragma once

#include "common/server/server.h"

/** What is to be handed on. */
struct totals {
    struct tally tally;
    uint32_t servers;
    uint32_t traces; /**< of them that have written one */
    bool own;        /**< that of this server is in it, or was handed on */
};

/** Once the back end is open: has the RM expect a line. Nothing is done where neither is asked for.
 */
void totals_open(struct server *server);

/** Takes a FRAME_STATS. */
void totals_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** @return whether all that @p n servers have counted is here, or nothing is asked for */
bool totals_are_whole(const struct server *server, uint32_t n);

/** Hands what is here to @p heir, which is another server. */
void totals_hand_over(struct server *server, uint32_t heir);

/** All servers leave, and this one speaks for them. */
void totals_show(struct server *server);

/** Writes the line. @param us of the step @param name of a node, by its index */
void totals_line(const struct totals *totals, uint64_t us,
                 const char *(*name)(void *arg, uint32_t node), void *arg, char *buf, size_t cap);

void totals_close(struct server *server);
