/** @file
 * The muster-server process of this step and node: its start and its end.
 */
#ifndef MUSTER_SLURM_LAUNCH_H
#define MUSTER_SLURM_LAUNCH_H

#include "common/util/err.h"
#include "plugins/slurm/identity.h"
#include "plugins/slurm/relay.h"

/** A started server. */
struct launch {
    int control;        /**< our end of the control socket, non-blocking; -1: not started */
    int pidfd;          /**< the server's process; -1 where the kernel has none */
    struct relay relay; /**< its standard error */
};

/**
 * Starts the server as the user, with nothing of ours but the descriptors of boot.h.
 * @param listener descriptor of the listening socket; stays the caller's
 * @param node for messages
 * @return 0, or -1 with the reason in @p err and nothing left behind
 * @thread slurmstepd's main thread
 */
int launch_server(struct launch *launch, const struct identity *user, int listener,
                  const char *node, struct err *err);

/** Asks the server to leave, waits, and after a bound ends it by force. Closes everything. */
void launch_end(struct launch *launch, const char *node);

/** Ends it by force, now. Closes everything. */
void launch_kill(struct launch *launch);

#endif
