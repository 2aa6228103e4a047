/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The Unix socket in slurmd's spool directory that messages from other nodes arrive at.
 */
#pragma once

#include "common/util/err.h"
#include "plugins/slurm/facts.h"

#include <sys/un.h>

/** `<spool>/muster.<job>.<step>.<run>` (FACTS_SOCKET): mode 0600, the job's user's. What an earlier
 * run of the step sends or removes late has another name. */
struct listener {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /**< empty: there is none */
    int fd;                                                 /**< owned; -1: closed */
};

/**
 * Removes the sockets of steps that ended without us, and makes this step's. The server, being the
 * user, could do neither in a directory that is root's.
 * @return 0, or -1 with the reason in @p err and nothing left behind
 * @thread slurmstepd's main thread
 */
int listener_open(struct listener *listener, const struct facts *facts, struct err *err);

/** Closes our descriptor, of which the server has its own. Held as long as the server is not dead:
 * of a server that leaves in order, the socket is removed before it would refuse. So a sender that
 * is refused knows that the server has died. @thread any that has the only reference to it */
void listener_close(struct listener *listener);

/** Removes it, then closes. */
void listener_remove(struct listener *listener);
