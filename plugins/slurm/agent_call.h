/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Calls to the agent in srun (agent.h), of muster-server, and of slurmstepd with the rights of the
 * job's user (herald.h).
 */
#pragma once

#include "common/transport/rm.h"
#include "common/transport/wire.h"
#include "common/util/err.h"
#include "plugins/slurm/agent_line.h"

#include <sys/types.h>

/**
 * Tells the agent how the step ends, and why, unless ending->told. The agent shows the first
 * reason.
 * @param address as agent_find() gave it; NULL: there is none
 * @param ms at most, in milliseconds, for munged and then for the agent
 * @return 0 when the agent has it, or -1 with the reason in @p err
 * @thread one that may wait
 */
int agent_call_status(const char *address, const struct rm_ending *ending, int ms, struct err *err);

/** Gives the agent a line for the user's terminal, or, by "", says that there will be one. The rest
 * as above. */
int agent_call_line(const char *address, const char *text, int ms, struct err *err);

/** A line that many nodes may have alike. */
struct agent_cause {
    uid_t user; /**< the job's; nobody else can read the credential */
    const char *node, *text;
};

/** Gives the agent such a line: it makes one of all. The rest as above. slurmstepd calls this, and
 * root must read nothing that the user may have written: the answer is compared, and never parsed.
 */
int agent_call_cause(const char *address, const struct agent_cause *cause, int ms, struct err *err);

/** Gives the agent one frame, and stays: what it says next can be read from the socket, by @p line.
 * @param frame with its head @param line zero; open when a socket is returned, for
 * agent_line_close() @return a non-blocking socket, or -1 with the reason in @p err
 * @thread one that may wait */
int agent_call_open(const char *address, const struct wire_out *frame, int ms,
                    struct agent_line *line, struct err *err);
