/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Several steps of one session on this machine, without a resource manager, for tests of groups
 * across steps: the launcher `session` plays the plugin to real muster-servers, which load
 * rm_session.so.
 *
 * In the session's directory each server has a socket, and a step that its server wants ended has a
 * file.
 */
#pragma once

#include "common/launch/boot.h"

#include <sys/types.h>

/** Of the directory, the namespace and the node's index. */
#define SESSION_SOCKET "%s/%s.%u"
/** Of the directory and the namespace. */
#define SESSION_ABORT "%s/%s.abort"

/** One step as the launcher has it. */
struct step {
    struct boot boot; /**< of its first node */
    char **argv;
    pid_t *servers, *tasks; /**< by node, by rank; 0: it has ended */
    int *controls;          /**< by node: to its server; -1: closed */
    uint32_t left;          /**< tasks that run */
    bool leaving;           /**< its servers were told to leave */
    int status;             /**< the highest exit status of its tasks; 128 and the signal */
};

/** The launcher. */
struct session {
    const char *server; /**< path of muster-server */
    char dir[64];
    uint32_t nsteps;
    struct step *steps;
};

/** Fills in @p step's boot message. @return false when out of memory */
bool step_describe(struct session *session, struct step *step, uint32_t index, uint32_t nnodes,
                   uint32_t ntasks);

/** Starts its servers and then its tasks. @return 0, or -1 with the reason in @p err */
int step_start(struct session *session, struct step *step, struct err *err);

/** A child has ended: tells the server of its node, and ends what has to end. @return whether it is
 * one of this step's */
bool step_ended(struct step *step, pid_t pid, int status);

/** Kills all of its processes that are left. */
void step_kill(struct step *step, bool servers);

void step_free(struct step *step);
