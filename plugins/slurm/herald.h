/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lines of slurmstepd that many nodes may have alike, such as why there is no server: srun's agent
 * takes them, and makes one of all (agent_causes.h).
 *
 * Where no agent takes a line, it goes by Slurm's own connection to srun. What comes there before
 * the first task is lost to the user, so until then the line is kept.
 *
 * The agent's address is from the tasks' environment, so it may be any the user likes, and the
 * agent takes credentials of its own user alone. So the calls are made by a thread that has the
 * user's rights instead of root's, as far as others see it.
 */
#pragma once

#include "common/launch/identity.h"

#include <stdbool.h>

struct herald;

/** For whom it speaks; all is copied. */
struct herald_of {
    const struct identity *user;
    const char *node;
    const char *agent;             /**< as agent_find() gave it; NULL: there is none */
    void (*log)(const char *line); /**< to slurmd's log and, once there are tasks, to the user */
};

/** @return NULL: out of memory. @thread any */
struct herald *herald_new(const struct herald_of *of);

/** Says a line, which is copied. @thread any */
void herald_say(struct herald *herald, const char *line);

/** There is a task: what is logged reaches the user from now on. @thread any */
void herald_has_task(struct herald *herald);

/** @return a descriptor that is readable when herald_is_idle() may say something else, or -1
 * @thread any */
int herald_fd(const struct herald *herald);

/** @return whether the agent has been told of all lines, or will not be, which is so after some
 * seconds whatever happens. @param herald NULL is fine @thread one at a time */
bool herald_is_idle(struct herald *herald);

/** Waits until it is idle, which takes some seconds at most. @param herald NULL is fine
 * @thread as herald_is_idle() */
void herald_wait(struct herald *herald);

/** Logs what nobody has taken. @param herald NULL is fine @thread the last one */
void herald_free(struct herald *herald);
