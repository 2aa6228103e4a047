/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the server and a back end say about steps that a process starts (PMIx_Spawn).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How ranks are laid out over the nodes. */
enum rm_map {
    RM_MAP_ANY,   /**< as the RM does it when nothing is asked for */
    RM_MAP_BLOCK, /**< consecutive ranks on a node */
    RM_MAP_NODES, /**< consecutive ranks on consecutive nodes */
};

/** What a process is bound to. */
enum rm_bind {
    RM_BIND_ANY,
    RM_BIND_NONE,
    RM_BIND_THREAD,
    RM_BIND_CORE,
    RM_BIND_NUMA,
    RM_BIND_SOCKET
};

enum {
    RM_INPUT_NONE = 0xffffffff, /**< rm_spawn::input: no process reads the terminal */
    RM_INPUT_ALL = 0xfffffffe,
};

/** A step that is to be started in the allocation of this one. */
struct rm_spawn {
    const char *parent; /**< namespace of the process that starts it */
    uint32_t rank;      /**< and its rank */
    uint32_t ntasks;    /**< of all applications */
    char **plan;        /**< what they run: common/launch/plan.h */
    uint32_t nplan;
    const char *apps;  /**< tasks of each application, "2,3" */
    const char *hosts; /**< the node of each rank, separated by commas; NULL: as map says */
    enum rm_map map;
    uint32_t per_node; /**< tasks on each node; 0: as map says */
    enum rm_bind bind;
    uint32_t input;     /**< the rank that reads the terminal, or RM_INPUT_… */
    const char *output; /**< files that take the output, without rank; NULL: the terminal */
    const char *psets;  /**< process sets, "sea=0-1:air=2-3" (nspace/psets.h); NULL: none */
    const char *debug;  /**< which processes wait for a debugger (nspace/stop.h); NULL: none */
    bool merge, tag;    /**< standard error goes to standard output; lines begin with the rank */
    bool daemons;     /**< they are beside other processes, and use none of the job's processors */
    bool overcommit;  /**< more tasks than processors are welcome */
    uint32_t timeout; /**< s until all processes have to have been started */
    uint32_t linger;  /**< s that the step may go on after that of its parent; 0: for ever */
};

/** What has become of it. The numbers are on the wire. */
enum rm_spawn_result {
    RM_SPAWN_RUNS = 0, /**< every process has been started */
    RM_SPAWN_ENDED,    /**< later: it has ended */
    RM_SPAWN_NO_RESOURCES,
    RM_SPAWN_NO_PROGRAM,
    RM_SPAWN_NO_EXECUTE, /**< the program must not be executed, or is none */
    RM_SPAWN_NO_DIRECTORY,
    RM_SPAWN_NO_ENTRY, /**< the working directory cannot be entered */
    RM_SPAWN_TIMEOUT,
    RM_SPAWN_UNREACHED, /**< nothing that starts steps can be reached */
    RM_SPAWN_FAILED,    /**< anything else */
    RM_SPAWN_REFUSED,   /**< the RM starts no steps here */
    RM_SPAWN_RESULTS,
};

/** News of a spawned step; all of it is borrowed. */
struct rm_spawn_news {
    enum rm_spawn_result result;
    const char *text;         /**< of a failure: what happened, one line */
    const void *registration; /**< RM_SPAWN_RUNS: as boot_write_nspace() wrote it */
    size_t len;               /**< of that */
    uint32_t status;          /**< RM_SPAWN_ENDED: its exit status, as a shell shows it */
};

/** Takes news: one failure, or RM_SPAWN_RUNS and then, if the server lives as long, RM_SPAWN_ENDED.
 * @thread the loop's */
typedef void rm_spawn_fn(void *arg, const struct rm_spawn_news *news);
