/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where servers of several jobs meet: for each owner the server that asked first, until that server
 * is gone. Rank 0's module keeps it for all brokers.
 * @thread all of it: the broker module's
 */
#ifndef MUSTER_FLUX_MEETINGS_H
#define MUSTER_FLUX_MEETINGS_H

#include <stddef.h>
#include <stdint.h>

struct meetings;

/** A server that others meet at. */
struct meeting_home {
    uint64_t job;
    uint32_t node, nnodes;
    uint32_t broker; /**< rank */
};

/** @return what is empty, or NULL when out of memory */
struct meetings *meetings_new(void);

/**
 * Finds the home of an owner's servers; there is none yet: the one who asks is it.
 * @param owner uid of the job's user
 * @param asks  who asks
 * @return the home, borrowed until the next call, or NULL when out of memory
 */
const struct meeting_home *meetings_ask(struct meetings *meetings, uint32_t owner,
                                        const struct meeting_home *asks);

/** A server is gone. @param node PACKET_ALL_NODES: all of the job */
void meetings_gone(struct meetings *meetings, uint32_t owner, uint64_t job, uint32_t node);

/** A broker is not online any more. */
void meetings_offline(struct meetings *meetings, uint32_t broker);

/** @return how many are kept */
size_t meetings_count(const struct meetings *meetings);

void meetings_free(struct meetings *meetings);

#endif
