/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the back end for Slurm. Private to rm_slurm.c and inbox.c.
 */
#ifndef MUSTER_SLURM_RM_SLURM_H
#define MUSTER_SLURM_RM_SLURM_H

#include "common/handoff/handoff.h"
#include "common/transport/rm.h"
#include "shims/slurm/slurm_abi.h"

#include <pthread.h>
#include <stdbool.h>

enum { RM_THREADS_MAX = 9 /**< 8 that send, and one that ends the step */ };

/** Reads what slurmd writes to our socket. */
struct inbox;

/** Listens on @p fd, which it takes over. @thread the loop's
 * @param host borrowed until inbox_close() */
struct inbox *inbox_open(int fd, struct event_base *base, const struct rm_host *host);
void inbox_close(struct inbox *inbox);

/** Bytes that wait for a node. */
struct outgoing {
    struct outgoing *next;
    char *data;
    size_t len;
    enum frame_care care;
};

/** That a peer is lost, on its way to the loop. */
struct loss {
    struct handoff_item item;
    struct rm *rm;
    uint32_t node;
    char why[320];
};

/** Another server, by node index; guarded by the lock. */
struct peer {
    struct outgoing *queue, **tail;
    struct outgoing *sent; /**< what a thread is sending to it; NULL: none is */
    struct loss loss;
    bool reached;          /**< something has arrived there before, or has come from there */
    bool lost;             /**< it was given up: nothing is sent any more */
    bool left;             /**< it has no socket any more: its tasks have ended */
    int64_t failing_since; /**< ms; 0: it is not failing */
    int64_t not_before;    /**< ms: when to try again */
    uint32_t retry_ms;
    uint64_t retries; /**< messages that failed and were put back */
    uint64_t dropped; /**< frames of CARE_MAY in messages that failed */
};

struct rm {
    const struct boot *boot;
    struct rm_host host;
    const char *jobs; /**< whose steps of that id are the step's components: "2,3" */
    const char *runs; /**< of each of them: which run it is, as step_run_next() reads it */
    uint32_t step;
    const char *agent; /**< srun's, see agent_call.h; NULL: it has none */
    char *address;     /**< where servers listen; slurmd puts its node's name for %n */
    int64_t opened;    /**< ms: when we started */
    int64_t peer_ms;   /**< how long a node may fail until it is lost */
    struct handoff *handoff;
    struct inbox *inbox;

    pthread_mutex_t lock; /**< guards all below */
    pthread_cond_t wake;  /**< something to send, or the end */
    pthread_cond_t doom;  /**< the step is to be ended, or the end */
    struct peer *peers;
    uint32_t turn;           /**< where the next look for work begins */
    bool kill;               /**< the step is to be ended */
    bool told;               /**< srun was told with what status */
    bool owed;               /**< slurmctld has not taken the order yet */
    struct rm_ending ending; /**< how it is to end; without the reason */
    int64_t kill_at;         /**< ms: at the latest, whatever is still to be sent */
    bool closing;
    int64_t close_by; /**< ms */
    pthread_t threads[RM_THREADS_MAX];
    uint32_t nthreads;
};

#endif
