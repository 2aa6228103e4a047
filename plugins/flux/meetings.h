/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Where servers of several jobs meet: for each owner and key the server that asked first. Rank 0's
 * module keeps it for all brokers.
 *
 * It is kept until that server is gone. Of one owner the MEETINGS_MAX latest are kept: what asks
 * for a key has its home within one operation's time, and a job may use any number of keys.
 * @thread all of it: the broker module's
 */
#ifndef MUSTER_FLUX_MEETINGS_H
#define MUSTER_FLUX_MEETINGS_H

#include <stddef.h>
#include <stdint.h>

struct meetings;

enum { MEETINGS_MAX = 4096 /* of one owner */ };

/** A server that others meet at. */
struct meeting_home {
    uint64_t job;
    uint32_t node, nnodes;
    uint32_t broker; /**< rank */
};

/** @return what is empty, or NULL when out of memory */
struct meetings *meetings_new(void);

/**
 * Finds the home of a key; there is none yet: the one who asks is it.
 * @param owner uid of the job's user; others' keys are others
 * @param asks  who asks
 * @return the home, borrowed until the next call, or NULL when out of memory
 */
const struct meeting_home *meetings_ask(struct meetings *meetings, uint32_t owner, const void *key,
                                        size_t len, const struct meeting_home *asks);

/** A server is gone. @param node PACKET_ALL_NODES: all of the job */
void meetings_gone(struct meetings *meetings, uint32_t owner, uint64_t job, uint32_t node);

/** A broker is not online any more. */
void meetings_offline(struct meetings *meetings, uint32_t broker);

/** @return how many are kept */
size_t meetings_count(const struct meetings *meetings);

void meetings_free(struct meetings *meetings);

#endif
