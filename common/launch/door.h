/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * A door: a listening socket that stands where no server is.
 *
 * A program that never calls PMIx needs no server, so its tasks run where none can be had. Nothing
 * tells such a program from one of PMIx before it calls PMIx_Init, and then libpmix connects to the
 * address in the task's environment. So tasks without a server are given the address of a door. The
 * first of them that knocks is of a PMIx program, and the launcher ends the step, with the reason.
 *
 * A door never answers and closes no connection of the user's: the task waits in PMIx_Init until it
 * is ended. If PMIx_Init failed instead, Open MPI would go on with a world of one task.
 */
#pragma once

#include "common/util/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** A door; fd is -1 where there is none. */
struct door {
    int fd;        /**< to be polled for reading */
    int guest;     /**< the connection that knocked, or -1 */
    uint16_t port; /**< on the loopback interface */
};

#define DOOR_NONE                                                                                  \
    {                                                                                              \
        .fd = -1, .guest = -1                                                                      \
    }

/** @param port 0: any that is free @return 0, or -1 with the reason in @p err */
int door_open(struct door *door, uint16_t port, struct err *err);

/** Takes the connections that wait. Those of other users are closed.
 * @return whether a process of @p user has knocked; then the door keeps that connection, and takes
 * no other one any more */
bool door_knocked(struct door *door, uid_t user);

/** Gives to @p set each variable that a task at this door gets; libpmix's own are overwritten. */
void door_tell(const struct door *door, const char *nspace, uint32_t rank,
               void (*set)(void *arg, const char *key, const char *value), void *arg);

/** @param env "K=V" of a task that has a server; NULL-terminated, or NULL
 * @return the server's port on the loopback interface, or 0: it is not known, or not a user's */
uint16_t door_port_of(char *const *env);

/** Closes the socket: later connections are refused. */
void door_close(struct door *door);
