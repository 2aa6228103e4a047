/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One question to many servers of the own step, each of which answers for itself.
 *
 * A server that asks few others asks each of them. When there are many, n, it parts them into some
 * √n parts. It asks the first server of each part twice: for its own answer, and to put the
 * question to the rest of its part (ASK_RELAY). Such a relay asks each server of the rest, and
 * sends what they have answered in one piece. So no server asks, or hears of, more than some 2·√n
 * others: 512 in a step of 65,536.
 *
 *                      ┌─ the question ─────────────► relay
 *     asking server ───┤
 *                      └─ the rest of its part ─────► relay ─── the question ──► each of the rest
 *
 * A server that is known to be lost is in no part, because a relay may not know it yet. A relay may
 * be lost, hang, or leave out what does not fit into its answer. Then the asking server
 * itself asks the servers of that part whose answers are missing. So a relay hides no server: of
 * each there is an answer, or a status that says why there is none.
 * @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_SURVEY_H
#define MUSTER_SERVER_SURVEY_H

#include "common/tracker/values/ranges.h"
#include "common/transport/ask.h"

enum {
    SURVEY_RELAY_S = 1,        /**< by which a relay's answer may be later than those to it */
    SURVEY_BYTES_MAX = 4 << 20 /**< of a relay's answer */
};

struct surveys;

/** @param asks borrowed @param few servers are asked without relays, up to this number
 * @return NULL when out of memory */
struct surveys *surveys_new(struct asks *asks, uint32_t self, uint32_t nnodes, uint32_t few);

/** Takes the answer of a server. @param status, data, len as in ask_done_fn */
typedef void survey_answer_fn(void *arg, uint32_t node, int32_t status, const void *data,
                              size_t len);

/** Asks all of @p nodes; @p answer is called exactly once for each, perhaps before this returns.
 * @param nodes of the own step, without this one; canonical, borrowed
 * @param timeout seconds; 0: none. With relays that hang it takes twice as long, and
 *                SURVEY_RELAY_S */
void surveys_ask(struct surveys *surveys, const struct ranges *nodes, enum ask_topic topic,
                 const void *body, size_t len, uint32_t timeout, survey_answer_fn *answer,
                 void *arg);

/** Serves ASK_RELAY: see ask.h. The arguments but the first are those of ask_serve_fn. */
void surveys_serve(struct surveys *surveys, uint32_t from, uint64_t id, const void *body,
                   size_t len);

/** After asks_close(). NULL is fine. */
void surveys_free(struct surveys *surveys);

#endif
