/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Those who call the agent in srun.
 *
 * It listens within SrunPortRange, where any user can connect to it. So:
 *
 *     caller      what it may do
 *
 *     stranger    send one HELLO of AGENT_STRANGER_MAX bytes within STRANGER_MS, or one CAUSE,
 * after which it is cut off; the oldest one gives way to the next caller when there are
 * STRANGERS_MAX, or no place is free, and has not said either by then
 *
 *     greeted     send its first frame
 *
 *     known       send frames until it has been silent for KNOWN_MS, or as long as a step runs that
 *                 it has started (agent_children.h)
 *
 * A stranger becomes known by a proof that it knows the secret, which looks cheap and keeps munged
 * out of the reach of other users, and by a credential that says that its point is of a process of
 * srun's own user, and of this step. The agent's own credential says the same of the agent's point.
 * From then on all frames are sealed (agent_line.h).
 *
 * srun may end while a server is about to say with what status: what has connected by then, or does
 * so within LAST_MS, is heard.
 * @thread the agent's
 */
#pragma once

#include "plugins/slurm/agent_children.h"
#include "plugins/slurm/agent_hello.h"
#include "plugins/slurm/agent_line.h"

#include <poll.h>

enum {
    STRANGERS_MAX = 32,
    CALLERS_MAX = STRANGERS_MAX + 32 + CHILDREN_MAX,
    CALLERS_FDS = 1 + CALLERS_MAX,
};

enum caller_state { CALLER_STRANGER, CALLER_GREETED, CALLER_KNOWN };

struct caller {
    enum caller_state state;
    int fd;                 /**< -1: no caller */
    uint64_t id;            /**< never the same twice */
    int64_t until;          /**< now_ms() when it is cut off, unless it has started a step */
    struct agent_line line; /**< of all but strangers: what they say and are told is sealed */
    struct wire_out in, out;
};

/** What the agent does for its callers. */
struct callers_hooks {
    /** Takes a frame, which is answered with the result. @param frame borrowed */
    enum agent_result (*take)(void *arg, uint64_t caller, struct agent_frame *frame);
    /** The answer that the frame was taken is out. */
    void (*taken)(void *arg, uint64_t caller, struct agent_frame *frame);
    /** @return whether a caller that is silent stays */
    bool (*keeps)(void *arg, uint64_t caller);
    void (*gone)(void *arg, uint64_t caller);
    void *arg;
};

struct callers {
    struct callers_hooks hooks;
    const struct agent_address *self; /**< what they have to know; borrowed */
    int listener;
    int64_t accept_at; /**< now_ms(); not before */
    struct caller all[CALLERS_MAX];
    uint64_t last_id;
    struct agent_hellos hellos;
    bool stopping;
    int64_t last_until; /**< now_ms(), when strangers are no more heard; once stopping */
};

/** Listens. @return 0 or an error number; callers_close() it also then */
int callers_open(struct callers *c, const struct callers_hooks *hooks,
                 const struct agent_address *self);

/** Sends a frame to a caller, if it is still there. */
void callers_tell(struct callers *c, uint64_t id, const struct wire_out *frame);

/** Writes what to poll for. @param fds room for CALLERS_FDS, of which all are written */
void callers_poll(const struct callers *c, struct pollfd *fds);
/** Takes what poll() has found of the callers that are there. */
void callers_ready(struct callers *c, const struct pollfd *fds);
/** Takes the next caller. @return whether one may have been there */
bool callers_accept(struct callers *c, const struct pollfd *fds);

/** @return now_ms() of the next deadline, or INT64_MAX */
int64_t callers_next(const struct callers *c, int64_t now);
/** Cuts off the callers whose time is over. */
void callers_tick(struct callers *c, int64_t now);

/** srun ends. */
void callers_stop(struct callers *c);
/** @return whether one may still say how the step ends */
bool callers_are_awaited(const struct callers *c);

void callers_close(struct callers *c);
