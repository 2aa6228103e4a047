/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lines that many nodes of a step may have alike, on the user's terminal: the first one at once,
 * and the nodes that say the same in one line more, a moment later.
 *
 *     srun: error: mpi/muster: 7.0 c07: cannot start muster-server: exec: No such file or directory
 *     srun: error: mpi/muster: 24 more nodes say the same as c07: c08-c31 (cannot start
 * muster-serv...)
 *
 * Two lines say the same if they differ only in the name of their node, in numbers, and in what is
 * behind the last point of a path. What a node says again is not news.
 *
 * Callers are processes of the user who runs srun, but their bytes may be anything: a name has
 * letters, digits and "._-" alone, a line is masked (log.h), and all is bounded: causes and nodes,
 * and the lines, as the wait until the next one of a cause doubles.
 * @thread the agent's; causes_end() when there is none any more
 */
#pragma once

#include "common/transport/wire.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CAUSES_MAX = 16,        /**< of a step; what comes then is one more, without words */
    CAUSE_NODES_MAX = 8192, /**< names of a cause that are kept; the others are counted */
    CAUSE_NODE_MAX = 64,    /**< bytes of a name */
};

struct cause {
    char *key;      /**< what lines that say the same have in common; owned, as is all below */
    char *head;     /**< the begin of the first line, without its node */
    char **nodes;   /**< that have said it, the first one first */
    uint32_t n;     /**< how many these are */
    uint32_t named; /**< of them, by a line */
    uint32_t more;  /**< times that it was said beyond CAUSE_NODES_MAX, since the last line */
    int64_t until;  /**< now_ms() of the next line; 0: there is nothing for one */
    int64_t gap;    /**< ms from the first node to come to that line */
};

/** All zero at first. */
struct causes {
    struct cause all[CAUSES_MAX + 1];
    uint32_t n;
};

/** Takes the body of AGENT_CAUSE. @return whether it is one */
bool causes_take(struct causes *causes, struct wire_in *in, int64_t now);

/** @return now_ms() of the next line, or INT64_MAX */
int64_t causes_next(const struct causes *causes);

/** Writes the lines that are due. */
void causes_tick(struct causes *causes, int64_t now);

/** Writes those that are left, and frees all. */
void causes_end(struct causes *causes);
