/** @file
 * State of srun's process. Private to srun.c, which starts and ends it, and events.c, its loop.
 */
#ifndef MUSTER_SLURM_STANDIN_SRUN_H
#define MUSTER_SLURM_STANDIN_SRUN_H

#include "shims/slurm/standin/run.h"

#include <poll.h>

struct node {
    pid_t pid;
    int control; /**< -1: gone */
    bool done;   /**< it said so */
};

struct srun {
    struct run *run;
    struct node *nodes;
    uint32_t live;  /**< nodes whose process is there */
    uint32_t ended; /**< tasks */
    int signals;    /**< signalfd */
    int events[2];  /**< pipe of struct slurmd_event */
    int status;     /**< the highest so far */
    bool interrupted, killing;
    int64_t kill_at; /**< ms; 0: not */
    int64_t die_at[FAULTS_MAX];
    struct pollfd *fds; /**< room for all that is polled */
};

/** The loop: until all nodes are gone and what they wrote is written. */
void srun_serve(struct srun *srun);

/** Kills the tasks of all nodes. */
void srun_kill_tasks(struct srun *srun);

#endif
