/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * One end of the connection of a caller and the agent in srun, once both know each other: each
 * frame is a record of its own (seal.h).
 * @thread any; one at a time
 */
#pragma once

#include "common/transport/seal/seal.h"
#include "common/util/err.h"
#include "plugins/slurm/agent_wire.h"

/** All zero: there is none. */
struct agent_line {
    const struct seal_ops *ops;
    struct seal *seal; /**< owned */
    unsigned char point[SEAL_POINT];
};

/** Makes this end's key pair. @return whether there is one */
bool agent_line_open(struct agent_line *line, struct err *err);

/** Agrees on the keys with the other end, whose point a credential has vouched for.
 * @return false: it is no point */
bool agent_line_agree(struct agent_line *line, enum seal_side side,
                      const struct agent_address *address, const unsigned char *theirs);

/** Appends @p frame, with its head, to @p out as a record. @return whether that was possible */
bool agent_line_put(struct agent_line *line, const struct wire_out *frame, struct wire_out *out);

/** Finds the record at the beginning of @p data, and deciphers it there.
 * @param frame its len is that of the record, and its body is borrowed from @p data
 * @return 1; 0 when it is not whole yet; -1: the connection is of no more use */
int agent_line_read(struct agent_line *line, unsigned char *data, size_t len,
                    struct agent_frame *frame);

void agent_line_close(struct agent_line *line);
