/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Servers of the step that have left, and why: what each of them says at its end, and how the
 * others come to know of it.
 *
 * A server leaves when the tasks of its node have ended, perhaps before another server has spoken
 * to it. A server that then needs one of those tasks would take it for one that has not started
 * yet, and seek it for timeouts.peer. So a server that leaves says goodbye to one other server: to
 * the nearest one above it in a k-ary tree of all servers, and if none is left there, to any. The
 * other passes it on along the tree, a moment later, with all that it knows: so a server that hears
 * of thousands at once sends as much as if it had heard of one. When all servers leave at once,
 * nothing is passed on.
 *
 * In the place of a server that has left stands the first one below it that is there, so that the
 * tree always holds together. What is said is the whole set each time: nothing is lost for good
 * when one frame is, and frames need neither numbers nor repetition (CARE_MAY).
 * @thread the loop's, all of it
 */
#ifndef MUSTER_SERVER_ABSENT_H
#define MUSTER_SERVER_ABSENT_H

#include "common/server/server.h"

/** @return 0, or -1: out of memory */
int absent_open(struct server *server);

/** Says goodbye, and runs the loop until another server has it, or none can be found within a
 * moment. Nothing of this server's may still be under way to others. @return whether all others
 * have left */
bool absent_tell(struct server *server);

/** Says goodbye once more if others have said it to this server since: they left at the same time,
 * and no other server may know. Nothing comes to this server any more. @return whether it has found
 * out that all others have left */
bool absent_tell_rest(struct server *server);

/** Takes the body of a FRAME_ABSENT of server @p from. */
void absent_receive(struct server *server, uint32_t from, const void *body, size_t len);

/** A frame came from server @p from: so it has started, and at the first one it may not know who
 * has left. */
void absent_heard(struct server *server, uint32_t from, enum frame_type type);

/** Frees what is known of servers that have left. */
void absent_close(struct server *server);

#endif
