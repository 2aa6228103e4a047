/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One question to all servers of another step: the first of them that is there puts it to all of
 * its step (ask_all.h), and sends back what they have said.
 *
 *     ASK_FAR    u8 topic, u32 seconds for the answers, body of an ASK of that topic; ASK_QUERY
 *                alone is taken
 *     answer     { u32 node, i32 status, block data }…, those of the step as they have come
 *
 * @thread the loop's, all of it
 */
#pragma once

#include "common/server/peers/ask_all.h"

struct nspace;

/** Asks all servers of @p ns, another step's namespace; @p answer is called once for each, with its
 * index in the namespace, perhaps before this returns. @param body borrowed @param timeout seconds
 */
void ask_far(struct server *server, const struct nspace *ns, enum ask_topic topic, const void *body,
             size_t len, uint32_t timeout, ask_all_answer_fn *answer, void *arg);

/** Serves ASK_FAR; @p arg is the server. */
void ask_far_serve(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);
