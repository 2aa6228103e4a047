/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Changes of the job's allocation, which srun's agent makes by commands of Slurm, as the job's
 * user: one request after another, in the order in which they came.
 *
 *     request   commands
 *
 *     EXTEND    scontrol: the job's partition, account, quality of service and time. salloc:
 *               another job, the expander, on nodes that the job has not; within it scontrol gives
 *               its nodes to the job. Its end gives back what has not been given away.
 *     RELEASE   scontrol: the job keeps its other nodes
 *     TIME      scontrol
 *
 * Whether a request has succeeded says slurmctld's record of the job afterwards, not a command's
 * status. What is asked for and not wanted any more, as its caller has gone or srun ends, is
 * undone: salloc is ended; nodes that have come go again.
 *
 *     state    meaning                                        what may come
 *
 *     IDLE     nothing runs                                   the next request
 *     LEARNS   scontrol runs                                  ASKS, or the answer
 *     ASKS     salloc or scontrol runs                        the answer, UNDOES
 *     UNDOES   scancel or scontrol runs, to undo              the answer
 *
 * While nodes are given back no step is started, and nodes are given back only when it is known
 * where each step runs.
 * @thread all of it: the agent's
 */
#pragma once

#include "plugins/slurm/agent_tool.h"
#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/job_nodes.h"

enum { RESIZES_MAX = 32 /**< that wait or run */ };

struct resizes;

struct resize_env {
    void *arg;
    const char *directory; /**< of Slurm's commands; borrowed */
    uint32_t job;
    char *const *variables; /**< srun's environment; borrowed */
    /** Sends a frame to the caller that has asked, if it is still there. */
    void (*tell)(void *arg, uint64_t caller, const struct wire_out *frame);
    /** Has no steps started, or lets them be started again. @return whether it is known where each
     * step runs */
    bool (*hold)(void *arg, bool on);
    /** The job has nodes that it did not have before. */
    void (*grown)(void *arg);
    /** job_nodes_read() and job_nodes_use(), which may take their time. */
    int (*nodes)(uint32_t job, struct job_nodes *nodes);
    int (*use)(uint32_t job, struct job_nodes *nodes);
    /** Splits Slurm's form of a list of nodes. @return names separated by commas, malloc()ed, or
     * NULL: it is none */
    char *(*split)(const char *list);
};

/** @param env copied @return NULL: out of memory */
struct resizes *resizes_new(const struct resize_env *env);

/** Takes the body of an AGENT_ALLOCATE of @p caller, which is answered by AGENT_ALLOCATED, perhaps
 * before this returns. */
void resizes_start(struct resizes *r, uint64_t caller, struct wire_in *body);

/** The connection of @p caller has ended. */
void resizes_caller_gone(struct resizes *r, uint64_t caller);
/** @return whether @p caller waits for an answer */
bool resizes_has(const struct resizes *r, uint64_t caller);

/** Writes what to poll for; TOOL_FDS of them. */
void resizes_poll(const struct resizes *r, struct pollfd *fds);
void resizes_ready(struct resizes *r, const struct pollfd *fds);
/** @return now_ms() of the next deadline, or INT64_MAX */
int64_t resizes_next(const struct resizes *r);
/** To be called in each round of the agent's loop. */
void resizes_tick(struct resizes *r, int64_t now);

/** srun ends: nothing more is done, and what is under way is undone. */
void resizes_stop(struct resizes *r);
/** @return how many wait or run */
unsigned resizes_count(const struct resizes *r);
/** None is there any more, or the process ends. NULL is fine. */
void resizes_free(struct resizes *r);
