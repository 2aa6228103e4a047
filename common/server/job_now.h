/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * How long the job may still run, and which nodes it has by now, which the RM alone knows: all that
 * want to know it at the same time share one question, and wait for `timeouts.query`.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/server/server.h"

enum {
    JOB_NOW_UNKNOWN = -1, /**< the RM cannot tell */
    JOB_NOW_LATE = -2,    /**< it has not told in time */
};

/** One that wants to know. */
struct job_wait {
    LIST_ENTRY(job_wait) entry; /**< job_now.c's */
    struct timer until;         /**< job_now.c's */
    /** Called once. @param seconds or JOB_NOW_… @param nodes as rm_job_fn has them, borrowed
     * @param why one clause, when the seconds are not known */
    void (*done)(void *arg, int64_t seconds, const char *nodes, const char *why);
    void *arg;
};

/** @param wait done and arg are set; stays put until done(), which may be called before this
 * returns */
void job_now_ask(struct server *server, struct job_wait *wait);

/** Lets all that wait go on. */
void job_now_close(struct server *server);
