/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the agent in srun is told for the user: why and with what status the step ends, and lines
 * for the terminal.
 *
 * Many nodes may meet one cause at once. So nothing is shown at once: until then the reason of the
 * weightiest cause is known, and lines that differ in nothing but the name of their sender's node
 * are one line, with the number of the other nodes.
 *
 * All texts come from a socket, from processes of the user. The log makes them harmless.
 * @thread the agent's
 */
#ifndef MUSTER_SLURM_AGENT_SAID_H
#define MUSTER_SLURM_AGENT_SAID_H

#include "common/transport/rm.h"
#include "plugins/slurm/agent_wire.h"

enum {
    SAID_REASON_MS = 100, /**< for a weightier reason: servers that know one are not far behind */
    SAID_FOLD_MS = 500,   /**< for other nodes to say the same */
    SAID_LINES_MAX = 16,  /**< that differ; more are not shown */
};

/** A line for the terminal. */
struct said_line {
    char text[AGENT_TEXT_MAX];
    char node[AGENT_NODE_MAX]; /**< of the first sender; "": not told */
    unsigned more;             /**< other nodes, not shown yet */
    int64_t due;               /**< now_ms() when it is shown; 0: never */
};

/** All zero: nothing was told. */
struct said {
    struct said_line lines[SAID_LINES_MAX];
    unsigned nlines;
    struct said_line reason; /**< why the step ends; text "": not told */
    struct rm_ending ending; /**< how; why is NULL */
    bool ends;               /**< the above was told */
};

/** The step ends. The weightier cause counts, and of two alike the first.
 * @param ending with its reason, or NULL there */
void said_ending(struct said *said, const struct rm_ending *ending, int64_t now);

/** @param text a line for the terminal @param node of its sender, or "" */
void said_line(struct said *said, const char *text, const char *node, int64_t now);

/** @return now_ms() when said_tick() is due, or INT64_MAX */
int64_t said_next(const struct said *said);

/** Shows what is due by now; INT64_MAX: all. */
void said_tick(struct said *said, int64_t now);

#endif
