/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The server's state, for people: as JSON in a file, and to muster-status over a local socket.
 *
 * SIGUSR1 has the state of this server written to `status.json` in its directory, mode 0600.
 *
 * The socket `status` in the same directory, which is the user's alone, takes one request a
 * connection, "local\n", "all\n" or "guard\n", and answers with one object (docs/wire.md). Only the
 * server's own uid and root are answered. For "all" all servers are asked for ASK_STATUS
 * (peers/ask_all.h). However many ask at once, one collection serves them; connections, their life
 * and the size of what is collected are bounded. Frames of peers take another way (rm.h), which
 * nothing here touches.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/transport/wire.h"

#include <stddef.h>
#include <stdint.h>

#define STATUS_SOCKET "status"
#define STATUS_FILE "status.json"

enum {
    STATUS_CONNECTIONS_MAX = 8,
    STATUS_REQUEST_MAX = 16,   /**< bytes, the newline included */
    STATUS_LIFE_S = 20,        /**< of a connection: more than STATUS_ANSWER_S */
    STATUS_ANSWER_S = 5,       /**< for other servers to answer */
    STATUS_NODE_MAX = 1 << 20, /**< bytes of one server's state */
    STATUS_LIST_MAX = 64,      /**< operations, calls that belong to none yet, questions, sets,
                                    connections */
    STATUS_MISSING_MAX = 32,   /**< nodes missing from one operation */
    STATUS_PEERS_MAX = 256,
    STATUS_TASKS_MAX = 1024,
    STATUS_DEPTH_MAX = 16,        /**< of JSON that is read: a server's state has 5 */
    STATUS_SHORT_MAX = 16,        /**< in status_operations(): operations, and what else waits */
    STATUS_SHORT_MISSING_MAX = 8, /**< nodes missing from one of them */
};

struct server;
struct status;

/** @return this server's state as one line of JSON, which the caller frees */
char *status_text(struct server *server, size_t *len);

/** rm_host.state of the server @p arg: its operations alone, in lists that are as long as @p max
 * leaves room for. */
char *status_operations(void *arg, size_t max, size_t *len);

/** Blocks the signal, so that it cannot end the process. @thread before there are others */
void status_block_signal(void);

struct status_signal;

/** Begins to take the signal, which was blocked. */
struct status_signal *status_signal_open(struct server *server);
void status_signal_close(struct status_signal *signal);

/** Begins to listen for requests and the signal. @return NULL after a warning: the step goes on */
struct status *status_open(struct server *server);

/** Answers ASK_STATUS: see server_hooks. */
int32_t status_answer(struct server *server, struct wire_out *out);

/** Closes all; view_mute() was called before. */
void status_close(struct status *status);
