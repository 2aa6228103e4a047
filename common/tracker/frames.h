/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the files of the engine's uppermost layer know of each other. Private to them.
 */
#pragma once

#include "common/tracker/recovery/recovery.h"

/** @return the tracker of a signature that another server speaks of, after the failed call was made
 * if a construct of it was cancelled here; NULL: it has nothing to do with this server */
struct tracker *calls_tracker(struct engine *engine, const void *sig, size_t siglen);
/** Takes a FRAME_CONTRIB. */
void contribution_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** Takes a FRAME_RELEASE. */
void release_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** Takes a FRAME_PIECE. */
void piece_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
