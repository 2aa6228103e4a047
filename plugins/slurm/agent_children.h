/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The steps that srun's agent has started for processes of its own step (PMIx_Spawn).
 *
 * Each is an srun of its own, a child of this srun. So its output goes where ours goes, and a
 * Ctrl-C at the terminal reaches it. The plugin in it has an agent, too, and tells us over a socket
 * pair how the step gets on:
 *
 *     state    meaning                           what may come
 *
 *     WAITS    children_hold()                   srun is started
 *     TRIES    srun asks for a step              LAUNCHED; its end: with other processors again
 *     BEGINS   there is a step                   STARTED: every process runs, or one cannot
 *     RUNS     every process runs                its end
 *     ENDS     it was told to end                its end; killed by slurmctld, then srun itself
 *
 * A step ends with the connection of the server that has asked for it, unless that server has let
 * it go (LET_GO).
 * @thread all of it: the agent's
 */
#pragma once

#include "plugins/slurm/agent_wire.h"
#include "plugins/slurm/job_cpus.h"

#include <poll.h>

enum {
    CHILDREN_MAX = 128,
    CHILDREN_FDS = 3 * CHILDREN_MAX,
};

struct children;

struct children_env {
    void *arg;
    const char *program; /**< srun; borrowed until children_free() */
    uint32_t job;
    /** Sends a frame to the caller that has asked for a step, if it is still there. */
    void (*tell)(void *arg, uint64_t caller, const struct wire_out *frame);
    /** Has slurmctld kill a step. May take its time. */
    void (*kill)(void *arg, uint32_t job, uint32_t step);
    /** @return how many processors of the job no step has; those that @p shares names do not count;
     * -1: it is not known. May take its time. */
    int64_t (*free_cpus)(void *arg, uint32_t job, job_cpus_shares_fn *shares, void *shares_arg);
    /** @return nodes of the job that no step uses, with so many processors, as job_nodes_idle() has
     * them; NULL: there are none, or it is not known. May take its time. */
    char *(*idle_nodes)(void *arg, uint32_t job, uint32_t cpus, uint32_t *n);
};

/** @param env copied @param variables srun's environment, copied @return NULL: out of memory */
struct children *children_new(const struct children_env *env, char *const *variables);

/** Takes the body of an AGENT_SPAWN of @p caller, which news will tell how it went: perhaps before
 * this returns. */
void children_start(struct children *c, uint64_t caller, struct wire_in *body);

/** The steps of @p caller may go on without it. */
void children_let_go(struct children *c, uint64_t caller);

/** The connection of @p caller has ended: so do its steps, unless it has let them go. */
void children_caller_gone(struct children *c, uint64_t caller);

/** @return whether @p caller has a step that is not let go */
bool children_has(const struct children *c, uint64_t caller);

/** The job has grown. Slurm gives no step free processors on the nodes that have come; so what is
 * started from now on shares processors, and gets nodes that no step uses, if there are enough. */
void children_have_grown(struct children *c);

/** While @p on, no srun is started; steps that are asked for wait. @return whether no srun just
 * asks for a step, so that slurmctld knows all of them */
bool children_hold(struct children *c, bool on);

/** Writes what to poll for. @param fds room for CHILDREN_FDS @return how many */
unsigned children_poll(const struct children *c, struct pollfd *fds);
/** Takes what poll() has found, of the same array. */
void children_ready(struct children *c, const struct pollfd *fds, unsigned n);

/** @return now_ms() of the next deadline, or INT64_MAX */
int64_t children_next(const struct children *c);
void children_tick(struct children *c, int64_t now);

/** srun ends: its steps do, too, at once when it @p failed, else when their time is over. */
void children_stop(struct children *c, bool failed);

/** @return how many there are */
unsigned children_count(const struct children *c);

/** None is there any more, or the process ends. NULL is fine. */
void children_free(struct children *c);
