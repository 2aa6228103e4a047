/** @file
 * Nodes whose tasks ended before they called PMIx_Init: of a program that cannot be started there,
 * or lacks a library, say.
 *
 * The server of such a node leaves at once, perhaps before anybody has spoken to it. Who then waits
 * for its tasks would seek it for timeouts.peer, as one that has not started yet. So it says why it
 * leaves, along a tree of all servers of the step, since it may be one of thousands that do.
 * @thread the loop's, all of it
 */
#ifndef MUSTER_SERVER_ABSENT_H
#define MUSTER_SERVER_ABSENT_H

#include "common/server/server.h"

/** Says that this server leaves, if a task here has failed before PMIx_Init. */
void absent_tell(struct server *server);

/** Takes the body of a FRAME_ABSENT, passes it on, and counts that server as one that has left. */
void absent_receive(struct server *server, const void *body, size_t len);

#endif
