/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Calls that name processes of other steps of which this server has not heard.
 *
 * A program may have the name of a namespace from anywhere. Of the servers of the own step with
 * participants, one, the *speaker*, asks the resource manager for the step of that name, introduces
 * itself there, and gets the registration in return; spread.h then takes it to the other servers of
 * the step. A server that is not the speaker waits for that, and asks by itself after
 * SEEK_SELF_MS, as the speaker may be late or lost.
 *
 * Where the RM finds no steps, server::seeks is NULL, and no call waits.
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

struct server;

/** One call that waits. */
struct seek_wait {
    LIST_ENTRY(seek_wait) entry; /**< seek.c's */
    const struct procset *set;   /**< participants; stays put until done() */
    struct timer until;          /**< seek.c's */
    struct timer ask;            /**< seek.c's: to ask by itself */
    void (*done)(
        struct seek_wait *wait); /**< called once: all are known, or one is not to be had */
};

/** Sets server::seeks. */
void seek_open(struct server *server);

/** Waits until all namespaces of @p wait's set are known, or one is not to be had; done() may be
 * called before this returns. @param ms at most, besides SEEK_WAIT_MS */
void seek_begin(struct server *server, struct seek_wait *wait, int64_t ms);

/** A namespace has become known. */
void seek_learnt(struct server *server);

/** Server @p node of another step is gone: it will not introduce itself. */
void seek_server_lost(struct server *server, uint32_t node);

/** Lets all that waits go on, and what comes later. */
void seek_go_on(struct server *server);

/** The same, and frees server::seeks. */
void seek_close(struct server *server);
