/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * From any thread to the loop: a queue with one wake.
 *
 * The PMIx thread copies its arguments into an item and posts it; everything else happens on the
 * loop, so that no tracker needs a lock.
 */
#pragma once

#include <event2/event.h>

struct handoff_item;

/** Called on the loop, in the order of posting; owns the item. */
typedef void handoff_run_fn(struct handoff_item *item);

/** Stands first in whatever is posted. */
struct handoff_item {
    struct handoff_item *next; /**< the queue's */
    handoff_run_fn *run;       /**< set by posting */
};

struct handoff;

/** @return a queue into @p base, or NULL. @thread the loop's */
struct handoff *handoff_new(struct event_base *base);

/** Posts an item, which now belongs to the queue. @thread any */
void handoff_post(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run);

/** Posts an item that may wait: it does not wake the loop, and runs before whatever is posted next.
 * @thread any */
void handoff_post_behind(struct handoff *handoff, struct handoff_item *item, handoff_run_fn *run);

/** Runs what was posted; the loop does so by itself. @thread the loop's */
void handoff_run(struct handoff *handoff);

/** Frees the queue. All that was posted has been run, and no thread may post any more.
 * @thread the loop's */
void handoff_free(struct handoff *handoff);
