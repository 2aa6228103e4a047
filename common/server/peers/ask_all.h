/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One question to all servers of the step, each of which answers for itself: view_gather(), for
 * topics that a single server can be asked as well (transport/ask.h). A server that hangs hides
 * those below it in the tree, so what has not come up the tree by the deadline is asked once more
 * directly.
 * @thread the loop's, all of it
 */
#pragma once

#include "common/transport/ask.h"

struct server;

/** Takes the answer of a server of the step. @param status 0; what the server itself says;
 * VIEW_TOO_LONG; or a PMIx code: it has left or is lost, is late, or this server leaves
 * @param data borrowed; NULL with @p len 0 when @p status is not 0 */
typedef void ask_all_answer_fn(void *arg, uint32_t node, int32_t status, const void *data,
                               size_t len);

/** Asks all; @p answer is called once for each server of the step, this one as well, perhaps before
 * this returns. @param body borrowed @param timeout seconds; with a server that hangs it takes
 * twice as long; 0: none */
void ask_all(struct server *server, enum ask_topic topic, const void *body, size_t len,
             uint32_t timeout, ask_all_answer_fn *answer, void *arg);

/** view_env.answer of the server @p arg. */
int32_t ask_all_serve(void *arg, uint32_t origin, const void *text, size_t len,
                      struct wire_out *out);
