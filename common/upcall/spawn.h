/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * PMIx_Spawn: a call, and what its directives come to.
 *
 *     spawn.c             upcall: copies what is asked for into a plan, posts
 *     spawn_directives.c  each key once: taken, a hint that is logged, or refused by name
 *     spawn_hosts.c       which node each rank is to be on
 *     spawn_daemons.c     a debugger's daemons: one or more on each node of what is debugged
 *     spawn_answer.c      the answer, and how libpmix hears of the child
 *     spawn.c             loop: rm_ops.spawn, and its news: all servers of the step learn of the
 *                         namespace, then the call is answered; the event of the end comes later,
 *                         behind the output
 * @thread the loop's, unless said
 */
#pragma once

#include "common/launch/plan.h"
#include "common/server/status/shown.h"
#include "common/server/steps/seek.h"
#include "common/server/steps/spread.h"
#include "common/tracker/values/procset.h"
#include "common/upcall/upcall.h"

enum { SPAWN_HINTS_MAX = 16 };

/** What applies to one application, or, from the call's own directives, to all. */
struct spawn_wants {
    const char *wdir, *prefix; /**< borrowed from libpmix during the upcall; or NULL */
    const char *hosts;         /**< PMIX_HOST and PMIX_ADD_HOST */
    const char *hostfile;      /**< the same of files */
    const char *pset;          /**< PMIX_PSET_NAME */
    struct plan changes;       /**< of the environment */
    struct stop stop;          /**< PMIX_DEBUG_STOP_ON_EXEC, _IN_INIT, _IN_APP */
};

struct spawn {
    struct handoff_item item;
    LIST_ENTRY(spawn) entry; /**< of server::spawns: those of which the loop has heard */
    struct server *server;
    pmix_proc_t parent;
    pmix_spawn_cbfunc_t callback;
    void *cbdata;
    bool answered;
    bool ended;                    /**< no news will come */
    bool notify;                   /**< PMIX_NOTIFY_COMPLETION */
    bool forward_out, forward_err; /**< the output goes to the process that spawns: forward.h */
    char streams[3];               /**< which of it, in the plan's words */
    bool pushed;                   /**< PMIX_FWD_STDIN: input comes from there, too: push.h */
    uint32_t target;               /**< the rank that it names; PMIX_RANK_UNDEF: none */
    struct inlet *inlet;           /**< until the call is answered */
    uint64_t number;               /**< of forward.h; 0: no output does */
    struct stop stop;              /**< which processes wait for a debugger */
    char debug[STOP_TEXT_SIZE];    /**< the same, of what */
    bool daemons;                  /**< PMIX_DEBUGGER_DAEMONS: see spawn_daemons.c */
    pmix_proc_t debuggee;          /**< PMIX_DEBUG_TARGET */
    uint32_t daemons_per_node, daemons_per_proc; /**< 0: not said */
    struct procset sought;                       /**< the namespace of debuggee */
    struct seek_wait seek;                       /**< until it is known */
    uint32_t exit;                               /**< how the step has ended */
    struct rm_spawn what;
    struct plan plan;
    char *apps, *hosts, *output, *psets; /**< of what; owned */
    char *hints[SPAWN_HINTS_MAX];        /**< keys that are not taken, and need not be; owned */
    unsigned nhints;
    pmix_status_t status; /**< of reading */
    char refused[800];    /**< why, unless that is PMIX_SUCCESS; the log cuts what
                             is longer */
    pmix_nspace_t child;
    struct procset set;      /**< the child's namespace */
    struct spread_wait wait; /**< until the servers know it */
    struct shown_wait shown; /**< until the user can read why it is refused */
};

/** Notes that the call is refused. The first reason stays. One that is too long ends with "...".
 * @param fmt the reason, a clause that begins with its subject, "it" is the call
 * @thread PMIx's, then the loop's */
void spawn_refuse(struct spawn *spawn, pmix_status_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Reads the call's own directives, then those of an application into @p wants, all zero before.
 * Refuses the call when one of them cannot be done and is required.
 * @thread PMIx's */
void spawn_directives(struct spawn *spawn, struct spawn_wants *wants, const pmix_info_t info[],
                      size_t ninfo);

/** The nodes of the ranks of an application, appended to @p out with a comma before each but the
 * first. @return whether @p wants names any @thread PMIx's */
bool spawn_hosts(struct spawn *spawn, const struct spawn_wants *wants, uint32_t ntasks,
                 struct wire_out *out);

/** Has @p done run once the namespace that daemons are for is known, or is not to be had; perhaps
 * before this returns. */
void spawn_seek(struct spawn *spawn, void (*done)(struct seek_wait *wait));

/** Says how many daemons there are, and on which nodes, or refuses the call. */
void spawn_daemons(struct spawn *spawn);

/** Answers the call, once, and has libpmix know the child's namespace. Does not free the spawn: if
 * the step has ended, the caller of this function frees it. */
void spawn_answer(struct spawn *spawn, pmix_status_t status);
