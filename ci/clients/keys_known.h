/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What a process knows of its job without PMIx's reserved keys, for keys.c to compare them with.
 *
 * Each rank looks at its own environment (Slurm's variables), user, host, directory and arguments,
 * and puts what it found; after a fence everybody knows where everybody is. Under a host that sets
 * none of the variables only what the ranks find out together is known.
 */
#pragma once

#include "client.h"

/** A node, in the order of the step. */
struct known_node {
    char *name;      /**< the host's name for it */
    uint32_t tasks;  /**< of this job */
    uint32_t *ranks; /**< ascending */
    uint32_t slots;  /**< processors allocated; 0: not known */
};

/** An application, told by its own option --app. */
struct known_app {
    uint32_t tasks, nodes;
    pmix_rank_t first; /**< its lowest rank */
};

/** The job as its processes find it. */
extern struct known {
    uint32_t nnodes;
    struct known_node *nodes;
    uint32_t *node_of; /**< by rank: index in nodes */
    uint32_t *slot_of; /**< by rank: place among its node's ranks */
    uint32_t napps;    /**< applications are numbered from 0 */
    struct known_app *apps;
    uint32_t *app_of;       /**< by rank */
    uint32_t *app_rank_of;  /**< by rank: place among its application's ranks */
    char **wdir;            /**< by rank: where it was started */
    char **argv;            /**< by rank: its arguments, joined by blanks */
    char **cpus;            /**< by rank: "0-3,8" where it was bound at its start, or NULL */
    int *package_of;        /**< by rank: that of all these processors, or -1 */
    uint32_t step_slots;    /**< of the job's nodes; 0: not known */
    uint32_t session_slots; /**< of the allocation; 0: not known */
    uint32_t session_nodes; /**< 0: not known */
    char *session_list;     /**< "a,b,c", or NULL */
    char *step_list;        /**< the same of the job's nodes */
    const char *cluster;    /**< or NULL */
    const char *session_id; /**< or NULL */
    char *job_id;           /**< or NULL */
} known;

/** Finds all of it. Collective: a fence of the whole job. A test that starts the client
 * by another program sets KEYS_APP_ARGV and KEYS_WDIR to that program's arguments and directory; an
 * empty KEYS_APP_ARGV means that there is no such key.
 * @param app number of the application that we are of */
void known_find(uint32_t app, char *const *argv);
