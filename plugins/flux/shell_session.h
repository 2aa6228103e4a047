/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The one job of a shell, on its node: the server's start, its end, and what the shell tells it.
 * @thread the shell's, all of it
 */
#pragma once

#include "common/launch/handshake.h"
#include "common/launch/launch.h"
#include "common/launch/scratch.h"
#include "plugins/flux/children.h"
#include "plugins/flux/job.h"
#include "plugins/flux/parent.h"
#include "plugins/flux/shell_door.h"

/** The one job of this process. */
struct session {
    pid_t owner; /**< forked tasks have a copy of all this */
    flux_t *h;   /**< to the broker, the shell's */
    struct job job;
    struct identity user;
    struct scratch scratch;
    struct launch launch;
    struct task_env env;
    struct shell_door door;                   /**< where there is no server, or none any more */
    struct err why;                           /**< why there is none, then */
    struct children *children;                /**< NULL: tasks here start no jobs */
    struct parent *parent;                    /**< NULL: no job has started this one */
    uint32_t nended;                          /**< tasks of this node */
    flux_watcher_t *control, *unsent, *relay; /**< NULL: not watched (any more) */
    flux_watcher_t *ask;                      /**< it is time to ask whether the server answers */
    bool closed;                              /**< the server is gone */
    bool told;                                /**< the server was told where the tasks are bound */
    bool bound_each; /**< the shell binds each task on its own, between fork and exec */
};

/** Notes where the shell may run, before its own plugins bind it: the server is to run there. */
void session_note_cpus(void);

/** @return a session of this process without a server, or NULL when out of memory */
struct session *session_new(flux_shell_t *shell);

/**
 * Finds out about the job and starts its server on this node, or opens a door in its place.
 * @return 0, or -1 with the reason in @p err; session_free() it also then
 */
int session_open(struct session *s, flux_shell_t *shell, struct err *err);

/** Ends the server; a server that lives is asked to leave first. Jobs that tasks have started may
 * go on.
 * @param tell whether the shell can still report a server that has died unnoticed */
void session_close(struct session *s, bool tell);

/** Frees the session; what the shell still awaits of jobs ends with its process. */
void session_free(struct session *s);

/** Tells the server three numbers, as boot.h has them, if there is one. */
void session_tell(struct session *s, uint32_t first, uint32_t second, uint32_t third);

/** Tells the server, once, where all tasks of this node will be bound, if that is known by now. */
void session_tell_bound(struct session *s);
