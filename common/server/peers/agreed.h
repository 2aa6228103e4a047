/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * This server's part in the view that the servers of the step agree on (view/view.h): what is lost
 * here counts when all have agreed on it, what is said to all goes to the part that it is for, and
 * a server that ends leaves the view first.
 *
 * EARLY, from a server that leaves to the head, which says it to all: a task of that node has
 * failed before PMIx_Init, of a program that cannot be started there, say. When an operation then
 * waits for that node, the user is told so.
 * @thread the loop's, all of it
 */
#pragma once

#include "common/server/server.h"

void agreed_open(struct server *server);

/** Takes the body of a FRAME_VIEW or FRAME_OUTSIDE of server @p from. */
void agreed_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** Takes the body of a FRAME_EARLY that server @p from has sent to this one, the head, and says it
 * to all. */
void agreed_early_report(struct server *server, uint32_t from, const void *body, size_t len);

/** Takes the body of a FRAME_EARLY that the head @p from has said to all. */
void agreed_early(struct server *server, uint32_t from, const void *body, size_t len);

/** rm_host.lost of the server @p arg: of a server of the own step, which then is out of the view,
 * or of another step. @param why one clause, borrowed */
void agreed_lost(void *arg, uint32_t node, const char *why);

/** Tells the server that is to know it which other steps are to hear of this step's end, and what
 * was counted (totals.h). This one leaves: each server that leaves does so before its wish, and
 * hands on what it is told afterwards, so the head knows before all go. */
void agreed_hand_over(struct server *server);

/** Leaves the view, and runs the loop until the others let this server go, or for a moment.
 * @return whether all leave, and this server speaks for them */
bool agreed_leave(struct server *server);

void agreed_close(struct server *server);
