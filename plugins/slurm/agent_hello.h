/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The first frame of a caller of the agent in srun: whether it is of this step.
 * @thread all of it: the agent's
 */
#pragma once

#include "plugins/slurm/agent_line.h"

/** Callers that were taken, and how many were not; all zero at first. */
struct agent_hellos {
    unsigned char (*points)[SEAL_POINT]; /**< owned */
    size_t n;
    unsigned refused;
};

/** Takes the body of an AGENT_HELLO, and answers it. The first one that is not right is logged.
 * @param line zero; open when the caller was taken @param out the WELCOME is appended
 * @return whether the caller is of this step, and is no repetition of another one */
bool agent_hello_take(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in,
                      struct agent_line *line, struct wire_out *out);

/** Takes the body of an AGENT_CAUSE. @param payload zero; for wire_out_free() @param body a part of
 * that: what the line is @param taken SEAL_PROOF bytes: the answer, once it is taken
 * @return whether the caller is of this step */
bool agent_hello_cause(struct agent_hellos *h, const struct agent_address *self, struct wire_in *in,
                       struct wire_out *payload, struct wire_in *body, unsigned char *taken);

void agent_hello_free(struct agent_hellos *h);
