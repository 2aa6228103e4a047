/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What was lost on the way. The face of the engine's layer "recovery".
 */
#pragma once

#include "common/tracker/membership/membership.h"

TAILQ_HEAD(cancelled_list, cancelled);

/** What the layer keeps. */
struct recovery {
    struct cancelled_list cancelled; /**< cancel.c: what was ended before it was known */
};

/* cancel.c: constructs that ended here before they were handed up */

/** An operation has failed before the local call was made: that call is of the next one. What was
 * cancelled is of this one, now or, by tracker_failure::uncalled, later. */
void cancel_miss(struct engine *engine, struct tracker *t, const struct engine_result *result);
/** @return the operation that waits for a call of ours, or has failed without one, and whose
 * construct was cancelled; or NULL.
 * @param lost as in engine_cancel() */
const struct tracker *cancel_find(const struct engine *engine, const char *id, bool lost);
/** Remembers a construct whose signature is not known yet, and asks all servers for it. */
void cancel_keep(struct engine *engine, const char *id, bool lost);
/** @return the failed call to be made of a construct that was cancelled; or NULL: out of memory */
struct engine_call *cancel_call(const struct engine *engine, const void *sig, size_t siglen,
                                bool lost);
/** @param local a local call of @p t comes: what was cancelled came before it, also when another
 *               call is still being served
 * @return the failed call to be made when @p t is one that was cancelled; or NULL: it is none */
struct engine_call *cancel_meets(struct engine *engine, const struct tracker *t, bool local);
/** Takes a FRAME_CANCEL. */
void cancel_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
void cancel_close(struct engine *engine);

/* doubt.c: what may have succeeded without our knowing */

/** Asks others for the result when the server that would have brought it is lost, or fails the
 * operation once no server can know one. @p t may be gone afterwards. */
void doubt_progress(struct engine *engine, struct tracker *t);
/** Asks once more. */
void doubt_ask(struct engine *engine, struct tracker *t);
/** Writes the line about servers that have not answered. */
void doubt_missing(struct engine *engine, const struct tracker *t, char *buf, size_t cap);
/** Takes a FRAME_DOUBT. */
void doubt_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
/** Asks the leaders' servers for the outcome of what has claimed members here. See
 * engine_hooks::ask. */
bool doubt_members(struct engine *engine, uint64_t op, const void *sig, size_t siglen);

/* skipped.c: later tries, when an earlier one has failed for good */

/** A try that a call has skipped, and its failure for good. All NULL: there is none. */
struct skipped {
    const struct tracker *t;
    const struct tracker_past *past;
};

/** @return the first try before @p later, or @p later itself, that has failed for good since
 * @p call's first try was called, and that @p call did not make */
struct skipped tries_skipped(const struct engine *engine, const struct tracker *later,
                             const struct engine_call *call);
/** A failure of @p t has been learnt: when it is for good it ends later tries here, at once or, by
 * tracker::settle, soon. Other trackers may be gone afterwards. */
void tries_end(struct engine *engine, struct tracker *t, const struct engine_result *result);
/** The same of a try that was given up here before. @return the later try whose call here has to be
 * answered with it, by tries_answer(); or NULL */
struct tracker *tries_end_given_up(struct engine *engine, struct tracker *t,
                                   const struct engine_result *result);
/** Answers the call of a later try with the failure for good of an earlier one, @p t. The servers
 * below that have contributed to the later try are told. @param generation of the failure */
void tries_answer(struct engine *engine, struct tracker *own, const struct tracker *t,
                  uint64_t generation, const struct engine_result *result);
/** Answers the call of a later try that waits by tracker::settle with the failure of the try that
 * it has skipped, if that failure has a lower generation than @p before.
 * @return whether it waits no more; @p own may be gone */
bool tries_settle(struct engine *engine, struct tracker *own, uint64_t before);

/* wanted.c: what others wait for, and no process here has called */

/** Takes a FRAME_WANTED: answers it, or notes it until a participant here has ended. */
void wanted_take(struct engine *engine, struct tracker *t, struct frame_in *frame);
