/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long the job may still run, which the RM alone knows: all that want to know it at the same
 * time share one question, and wait for `timeouts.query`. @thread all of it: the loop's
 */
#ifndef MUSTER_SERVER_TIME_LEFT_H
#define MUSTER_SERVER_TIME_LEFT_H

#include "common/server/server.h"

enum {
    TIME_LEFT_UNKNOWN = -1, /**< the RM cannot tell */
    TIME_LEFT_LATE = -2,    /**< it has not told in time */
};

/** One that wants to know. */
struct time_wait {
    LIST_ENTRY(time_wait) entry; /**< time_left.c's */
    struct timer until;          /**< time_left.c's */
    /** Called once. @param seconds or TIME_LEFT_… @param why one clause, when they are not known */
    void (*done)(void *arg, int64_t seconds, const char *why);
    void *arg;
};

/** @param wait done and arg are set; stays put until done(), which may be called before this
 * returns */
void time_left_ask(struct server *server, struct time_wait *wait);

/** Lets all that wait go on. */
void time_left_close(struct server *server);

#endif
