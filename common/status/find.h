/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Finds the muster-server of a step on this node, and asks it for the state.
 *
 * The server's directory stands where every user may make one of any name, so a name proves
 * nothing. What counts: the directory's owner is the user that the caller names or is; the socket
 * in it is that owner's and no link; and the process behind it is, by the kernel's word, that
 * owner's.
 */
#pragma once

#include "common/status/place.h"
#include "common/util/err.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    FIND_STEP_MAX = 64,        /**< bytes of a step's name */
    FIND_ANSWER_MAX = 64 << 20 /**< bytes; a server says half of it at most */
};

/** Which server, and what of it. */
struct find {
    const char *step;                  /**< "4711.0", or another of its names that a place knows;
                                            NULL: every step */
    const char *dir;                   /**< where the servers' directories are, "/tmp" */
    const struct place *const *places; /**< where else, up to a NULL; NULL: nowhere */
    uid_t uid;                         /**< whose step it is; (uid_t)-1: any user's, for root */
    bool all;                          /**< the state of all its nodes, not of this one alone */
    bool only;                         /**< what is in dir goes before what places have */
    int ms;                            /**< to wait for the answer */
};

/** Which server was asked. */
struct found {
    uid_t owner;   /**< whose step it is */
    int guard;     /**< of find_guarded(): the connection, to be closed by find_let_go() */
    unsigned runs; /**< how many servers the owner has here for a step of that name: of several runs
                      of the step, as of a job that was requeued, the last one is asked */
};

/** @return whether @p step can be the name of a step */
bool find_is_step(const char *step);

/** Finds out whether the user's word @p step is a job to its resource manager. A number alone is
 * not told to be one: it may be Slurm's or Flux's. @param name filled in with its name as servers'
 * directories have it, @p cap bytes */
bool find_job(const struct find *find, const char *step, char *name, size_t cap);

/** @return what users call that of the name @p step: "job" or "step" */
const char *find_unit(const struct find *find, const char *step);

/** @return how messages name a user: by name, else "uid 4711"; @p buf */
const char *find_user_name(uid_t uid, char *buf, size_t cap);

/** @param found set to whose server was asked
 * @return the server's answer, which the caller frees; NULL with one sentence in @p err */
char *find_state(const struct find *find, struct found *found, struct err *err);

/** The same of this node alone, and the server guards its tasks from then on: when the connection
 * ends, it has those go on that a tool has left stopped (docs/wire.md).
 * @param found its guard is set */
char *find_guarded(const struct find *find, struct found *found, struct err *err);

/** Ends that. @param well nothing was left stopped, as far as is known */
void find_let_go(struct found *found, bool well);

/** A step that has a server on this node. */
struct find_step {
    char name[FIND_STEP_MAX + 1];
    uid_t owner;
};

/** Lists the steps that have a server here which is there, in the order of their names, each once.
 * @param find its step is NULL
 * @param n set to their number
 * @return what the caller frees, or NULL with the reason in @p err */
struct find_step *find_steps(const struct find *find, size_t *n, struct err *err);
