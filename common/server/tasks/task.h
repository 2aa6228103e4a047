/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A task of this node, from its start to its end, and what libpmix knows of it.
 * @thread the loop's, unless said
 */
#pragma once

#include "common/util/timers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** How far a task has come. task.c has the table of how it moves. */
enum task_state {
    TASK_STARTED,   /**< it has not called PMIx_Init, and perhaps never will */
    TASK_CONNECTED, /**< between PMIx_Init and PMIx_Finalize */
    TASK_CUT,       /**< its connection has closed without PMIx_Finalize, and it runs: cut.h */
    TASK_FINALIZED, /**< it has called PMIx_Finalize, and runs */
    TASK_ENDED,     /**< the process is gone; it had called PMIx_Finalize */
    TASK_EARLY,     /**< gone, before PMIx_Init */
    TASK_LOST,      /**< gone, between PMIx_Init and PMIx_Finalize */
    TASK_TOLD,      /**< lost, and tasks.c has reported that */
    TASK_STATES,
};

/** What can happen to a task. */
enum task_event {
    TASK_INIT,     /**< libpmix: it has connected */
    TASK_FINALIZE, /**< libpmix: it has finalized */
    TASK_CLOSE,    /**< libpmix: its connection has closed without that */
    TASK_END,      /**< the launcher: its process is gone */
    TASK_TELL,     /**< its loss is told */
    TASK_EVENTS,
};

/** What libpmix knows of a task's client: upcall/forget.c. */
enum client_state {
    CLIENT_KNOWN,
    CLIENT_LEAVES,    /**< libpmix was asked for what it has put, and then to forget it */
    CLIENT_FORGOTTEN, /**< libpmix has forgotten it */
};

/** Whether a task waits for a debugger: status/stopped.h. */
enum task_debug {
    DEBUG_RUNS,     /**< it has not waited yet */
    DEBUG_STOPPED,  /**< it waits */
    DEBUG_RELEASED, /**< it has waited, and goes on */
};

struct task {
    enum task_state state;
    uint32_t sig, code; /**< how it ended */
    int64_t at;         /**< when, now_ms(); once its connection has closed, when that was */
    struct timer cut;   /**< cut.c: when it counts as lost */
    _Atomic pid_t pid;  /**< its process; 0: the launcher has not told */
    enum task_debug debug;
    bool aborted; /**< PMIx_Abort has named it, and the step goes on: we kill it */

    /* used by upcall/forget.c */
    _Atomic unsigned connected;       /**< its connections to libpmix; PMIx's thread counts */
    _Atomic enum client_state client; /**< any thread sets LEAVES, once; the loop the rest */
    char *data;        /**< what it had put, owned; NULL: nothing, or libpmix has it */
    size_t len;        /**< of that */
    struct kept *kept; /**< owned: a question that libpmix has not answered, or NULL */
};

/** Makes a task's next step, if its table has one. @param rank for the log
 * @return whether it has */
bool task_move(struct task *task, uint32_t rank, enum task_event event);

/** @return "started", "connected", "cut", "finalized", "ended" or "lost" @thread any */
const char *task_state_name(enum task_state state);

/** @return whether its process is gone */
static inline bool task_has_ended(const struct task *task)
{
    return task->state >= TASK_ENDED;
}

/** @return whether it would be lost if it ended now */
static inline bool task_may_be_lost(const struct task *task)
{
    return task->state == TASK_CONNECTED || task->state == TASK_CUT;
}

/** @return whether it ended between PMIx_Init and PMIx_Finalize */
static inline bool task_is_lost(const struct task *task)
{
    return task->state >= TASK_LOST;
}
