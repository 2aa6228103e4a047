/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A thread that makes the calls which may block for long: one after another, in the order in which
 * they were asked for. The thread begins with the first of them.
 *
 *     worker_do() ──► queue ──► call, on the worker's thread ──► done, on the loop's
 *
 * A call holds those behind it. So there is a worker for each peer that may hang: munged,
 * slurmctld, srun. Where such a peer hangs, the worker's owner need not wait: the thread that is
 * left behind frees what it works on, and its worker, if the call ever returns.
 */
#pragma once

#include "common/handoff/handoff.h"

#include <stdbool.h>
#include <stdint.h>

/** Stands first in whatever is asked for. */
struct work {
    struct handoff_item item; /**< worker.c's */
    struct work *next;        /**< worker.c's */
    int64_t since;            /**< when it was asked for, now_ms() */
};

/** What all works of a worker have in common. */
struct work_ops {
    /** Makes the call. @thread the worker's */
    void (*call)(struct work *work);
    /** Takes the work with its result. @thread the loop's */
    handoff_run_fn *done;
    /** Frees a work that is not done, as its worker was closed. @thread any */
    void (*drop)(struct work *work);
};

/** handoff_post(), or NULL. */
typedef void worker_post_fn(struct handoff *handoff, struct handoff_item *item,
                            handoff_run_fn *run);

struct worker;

/** @param post how a work is handed to done; NULL: it stays the asker's, who calls worker_finish()
 * @return NULL: out of memory @thread any */
struct worker *worker_make(const struct work_ops *ops, worker_post_fn *post,
                           struct handoff *handoff);

/** @param ops,handoff borrowed as long as the worker is there @return NULL: out of memory */
static inline struct worker *worker_new(const struct work_ops *ops, struct handoff *handoff)
{
    return worker_make(ops, handoff_post, handoff);
}

/** Asks for a call. @return whether the worker has taken over @p work; else there is no thread
 * @thread the owner's, as all below */
bool worker_do(struct worker *worker, struct work *work);

/** @return since when the first call is asked for that has not returned, now_ms(); 0: none is */
int64_t worker_since(const struct worker *worker);

/** Frees the worker. Calls that have not begun are dropped, and nothing is handed to done any more.
 * @param by how long the call that is being made is waited for, now_ms() @param worker NULL is fine
 * @return whether the thread has ended; else it is left behind, for good if the process ends */
bool worker_close(struct worker *worker, int64_t by);

/** The same, once all calls are made, if they are until @p by. */
bool worker_finish(struct worker *worker, int64_t by);
