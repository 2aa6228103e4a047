/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One step that srun's agent starts; private to agent_children.c, whose header has the states.
 * @thread all of it: the agent's
 */
#pragma once

#include "plugins/slurm/agent_children.h"
#include "plugins/slurm/spawn_srun.h"

enum {
    CHILD_TEXT_MAX = 4096 /**< bytes of what srun says before there is a step; the rest is lost */
};

/** NONE: the entry is free; agent_children.h has the others. */
enum child_state { CHILD_NONE, CHILD_WAITS, CHILD_TRIES, CHILD_BEGINS, CHILD_RUNS, CHILD_ENDS };

struct child {
    enum child_state state;
    const struct children_env *env; /**< borrowed, as are the variables */
    char *const *variables;
    uint64_t caller; /**< 0: let go, or gone */
    bool told;       /**< the caller knows that it runs, or that it failed */
    enum spawn_cpus cpus;
    char *idle;     /**< nodes for it where the order does not say which; owned, or NULL */
    uint32_t nidle; /**< how many */
    struct spawn_order order;
    pid_t pid;
    int pidfd, channel, errors; /**< -1: none */
    struct wire_out in;         /**< of channel */
    char text[CHILD_TEXT_MAX];  /**< of errors */
    size_t len;
    uint32_t job, step; /**< job 0: not known yet */
    int64_t until;      /**< WAITS to BEGINS: when it is given up; ENDS: when it is killed */
    int killed;         /**< ENDS: how often */
};

/** Closes those of its descriptors that are open. */
void child_close(struct child *child);

/** Sends news to a caller, if it is still there. */
void child_tell_caller(const struct children_env *env, uint64_t caller, enum agent_type type,
                       const struct rm_spawn_news *news);
void child_tell(struct child *child, enum agent_type type, const struct rm_spawn_news *news);
/** Tells the caller that the step has not been started, unless the caller was told before. */
void child_tell_failure(struct child *child, enum rm_spawn_result result, const char *text);

/** Starts srun. @return 0 or an error number */
int child_try(struct child *child);

/** Tells srun to end. */
void child_end(struct child *child);
/** Ends it by harder means, after child_end() was in vain: its tasks may ignore SIGTERM. */
void child_kill_harder(struct child *child);

/** Takes what srun has written to its standard error, and to the channel. */
void child_read_errors(struct child *child);
void child_read_channel(struct child *child);

/** Why there is no step, by what srun says; writes that to the terminal. */
enum rm_spawn_result child_reason(const struct child *child);
void child_show(const struct child *child);
