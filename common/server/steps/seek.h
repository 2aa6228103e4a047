/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Calls that name processes of other steps of which this server has not heard.
 *
 * A program may have the name of a namespace from anywhere. Of the servers of the own step with
 * participants, one, the *speaker*, asks the resource manager for the step of that name, introduces
 * itself there, and gets the registration in return; spread.h then takes it to the other servers of
 * the step. A server that is not the speaker waits for that, and asks by itself after
 * SEEK_SELF_MS, as the speaker may be late or lost.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/tracker/values/procset.h"
#include "common/util/timers.h"

#include <sys/queue.h>

enum {
    SEEK_SELF_MS = 2000,
    SEEK_WAIT_MS = 15000, /**< after that a namespace counts as unknown */
};

struct seek_env {
    void *arg;             /**< handed to every function below */
    struct timers *timers; /**< borrowed */
    bool (*knows)(void *arg, const char *name);
    bool (*is_speaker)(void *arg, const struct procset *set);
    /** Looks for a namespace; seek_learnt() or seek_failed() comes, perhaps before this returns. It
     * may be asked for one that it is looking for. */
    void (*find)(void *arg, const char *name);
};

/** One call that waits. */
struct seek_wait {
    LIST_ENTRY(seek_wait) entry; /**< seek.c's */
    const struct procset *set;   /**< participants; stays put until done() */
    struct timer until;          /**< seek.c's */
    struct timer ask;            /**< seek.c's: to ask by itself */
    void (*done)(
        struct seek_wait *wait); /**< called once: all are known, or one is not to be had */
};

/** NULL, of a server whose RM finds no steps, is fine below: no wait is made then. */
struct seeks;

/** @param env copied */
struct seeks *seeks_new(const struct seek_env *env);

/** Waits until all namespaces of @p wait's set are known, or one is not to be had; done() may be
 * called before this returns. @param ms at most, besides SEEK_WAIT_MS */
void seek_begin(struct seeks *seeks, struct seek_wait *wait, int64_t ms);

/** A namespace has become known. */
void seek_learnt(struct seeks *seeks);

/** There is no such namespace that could be reached. */
void seek_failed(struct seeks *seeks, const char *name);

/** Lets all that waits go on. */
void seeks_close(struct seeks *seeks);

/** Closed before. */
void seeks_free(struct seeks *seeks);
