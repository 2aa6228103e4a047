/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the tests of the state share: a server without libpmix and without a back end, on a clock
 * that stands still, whose frames go nowhere.
 */
#pragma once

#include "common/server/server.h"

#include <json-c/json.h>

struct kit {
    struct server server;
    int64_t now;         /**< ms, of engine and asks */
    uint32_t sent;       /**< frames so far */
    uint64_t ask;        /**< id of the last question that was sent, or its number in the view */
    uint64_t view;       /**< number of the view, or the proposal, of the last frame of it */
    struct rm_peer peer; /**< what the back end says of every peer */
    struct engine_call calls[200];
    uint32_t ncalls;
    struct procset caller; /**< of kit_wait() */
};

/** @return a server of node 0 of @p nnodes, each with @p ntasks ranks, dealt in turn */
struct kit *kit_new(uint32_t nnodes, uint32_t ntasks);
void kit_free(struct kit *kit);

/** Has a construct of all ranks called here, under an id whose operation this server decides.
 * @param id a beginning of it */
void kit_construct(struct kit *kit, const char *id, uint32_t timeout);

/** Has rank 0 called as one of @p leaders of a bootstrap, or, with none, as an added member.
 * @param id stays put */
void kit_wait(struct kit *kit, const char *id, uint32_t leaders, uint32_t timeout);

/** @return status_text(), parsed */
json_object *kit_state(struct kit *kit);

/** @return a field that must be there: keys and indices, "trackers.0.missing" */
json_object *kit_field(json_object *o, const char *path);

/** Asserts that a field is this text. */
void kit_assert_text(json_object *o, const char *path, const char *text);

/** Asserts that a field is this number. */
void kit_assert_number(json_object *o, const char *path, double number);
