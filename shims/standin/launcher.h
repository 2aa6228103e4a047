/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of musterrun's first process. Private to launcher.c, which starts and ends it, and
 * events.c, its loop.
 */
#pragma once

#include "shims/standin/run.h"

#include <poll.h>

struct launched {
    pid_t pid;
    int control; /**< -1: gone */
    bool done;   /**< it said so */
};

enum {
    LAUNCHER_SPARE = 6,            /**< descriptors, one for each level of the directory */
    LAUNCHER_TIMEOUT_STATUS = 124, /**< as timeout(1) */
};

struct launcher {
    struct run *run;
    int spare[LAUNCHER_SPARE];
    struct launched *nodes;
    uint32_t live;  /**< nodes whose process is there */
    uint32_t ended; /**< tasks */
    int signals;    /**< signalfd */
    int events[2];  /**< pipe of struct run_event */
    int status;     /**< the highest so far */
    int given;      /**< by EVENT_STATUS; -1: none */
    /** Tasks that have ended alike, a moment ago, and are told of together. */
    struct alike {
        uint32_t *ranks; /**< room for all */
        uint32_t n;
        int status;    /**< as of wait(2) */
        int64_t until; /**< ms; then they are told of */
    } alike;
    bool interrupted, killing;
    int64_t kill_at;    /**< ms; 0: not */
    int64_t timeout_at; /**< the same: --timeout */
    int64_t die_at[FAULTS_MAX];
    struct pollfd *fds; /**< room for all that is polled */
};

/** The loop: until all nodes are gone and what they wrote is written. */
void launcher_serve(struct launcher *launcher);

/** Kills the tasks of all nodes. */
void launcher_kill_tasks(struct launcher *launcher);
