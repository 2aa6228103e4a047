/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Many engines in one process, as many as a large step has servers, to measure what one operation
 * costs each of them. The network is perfect: every frame takes 1 ms of a virtual clock. Faults in
 * plenty are the fault campaign's business (ci/campaign.d/campaign.h).
 *
 *     meter.c      memory of each server
 *     sim.c        servers, frames, clock
 *     sim_env.c    what an engine asks of its surroundings
 *     measures.c   the operations that are measured
 *     scale.c      is the program: sizes, table, JSON, and the bars that have to hold
 *
 * The engine is seen through engine.h only. Ranks 2s and 2s+1 live on server s.
 * @thread one
 */
#pragma once

#include "ci/sim/meter.h"
#include "common/tracker/engine.h"

enum {
    SIM_RANKS = 2,         /**< a server */
    SIM_HEADER = 24,       /**< bytes that the link puts ahead of each frame */
    SIM_WHOLE = 64 << 10,  /**< releases up to that many bytes reach all servers: see sim_send() */
    SIM_NONE = 0xffffffff, /**< no server */
    SIM_LOST = -101,       /**< status of a lost server */
    SIM_OTHER = -1000,     /**< and of what must not happen here */
};

#define SIM_NSPACE "slurm.4711.0"

struct sim_node {
    struct sim *sim;
    struct engine *engine;
    struct timers timers;
    struct meter meter;
    size_t base;           /**< of its memory, when the measurement began */
    bool dead;             /**< frames to it vanish, and it sends none */
    uint64_t due;          /**< its entry in the heap of timers, ms; UINT64_MAX: none */
    uint32_t frames_in;    /**< since the measurement began */
    uint64_t bytes_out;    /**< headers included */
    uint64_t bytes_in;     /**< headers included */
    uint32_t large;        /**< releases that it sent, of more than SIM_WHOLE */
    uint32_t above;        /**< the server whose release came first; SIM_NONE: none came */
    uint32_t awaits;       /**< calls that were made, and not answered */
    uint32_t releases_out; /**< to how many it has sent one */
};

/** What the servers have cost since sim_begin(). */
struct sim_costs {
    uint64_t frames, bytes;    /**< sent, headers included */
    uint64_t passed;           /**< frames that were handed to an engine */
    uint64_t unsent;           /**< of the frames: releases that were counted, but not made */
    uint32_t hops;             /**< that frames have gone one after another */
    uint64_t release;          /**< bytes of the longest release */
    double frame_ns;           /**< CPU of all frames */
    double call_ns;            /**< CPU of all calls */
    uint64_t calls;            /**< made */
    uint64_t answered, failed; /**< calls */
};

struct sim_frame {
    uint64_t at; /**< ms */
    uint32_t from, to, hops;
    void *data; /**< owned */
    size_t len;
};

struct sim_timer {
    uint64_t at;
    uint32_t node;
};

struct sim {
    uint32_t nnodes;
    uint64_t now; /**< ms */
    struct sim_node *nodes;
    struct sim_frame *frames; /**< a ring: all take as long, so the first sent is the first there */
    size_t first, nframes, cap;
    struct sim_timer *timers; /**< a binary heap */
    size_t ntimers, timers_cap;
    uint32_t hops;   /**< of the frame that an engine has now */
    uint32_t awaits; /**< calls of servers that live that were made, and not answered */
    bool sampled;    /**< some releases were not made */
    uint32_t victim; /**< dies when the first release is sent to it; SIM_NONE: no server does */
    struct sim_costs costs;
};

/** One call, to be kept until it is answered. */
struct sim_call {
    struct engine_call call;
    struct sim_node *node; /**< whose call it is */
    bool answered;
    int32_t status;
};

/** @return servers that have heard nothing; aborts when out of memory, as all of this does */
struct sim *sim_new(uint32_t nnodes, uint32_t arity);
void sim_free(struct sim *sim);

/** Forgets all costs so far. */
void sim_begin(struct sim *sim);

/** Makes a call on a server. @param make engine_call() or one of its kin */
void sim_call(struct sim *sim, uint32_t node, struct sim_call *call,
              void (*make)(struct engine *engine, struct engine_call *call));

/** For engine_call::done: counts the answer. */
void sim_answered(struct sim_call *call, int32_t status);

/** Server @p node is dead from now on; the others do not know. */
void sim_kill(struct sim *sim, uint32_t node);

/** All others learn that the server is lost. */
void sim_tell_loss(struct sim *sim, uint32_t node);

/** Lets time pass until all calls are answered and no frame is under way, or @p ms have passed. */
void sim_run(struct sim *sim, uint64_t ms);

/** Takes a frame of a server; for sim_env.c. A release of more than SIM_WHOLE bytes goes on to the
 * first child of each server only. The others get the same bytes; so these are counted, and not
 * made: 65,536 results of 8 MB are half a terabyte. */
void sim_send(struct sim_node *from, uint32_t to, struct wire_out *frame,
              struct shared_bytes *body);

/** Makes a server's engine. */
struct engine *sim_engine(struct sim_node *node, uint32_t index, uint32_t arity);

/** @return @p p, unless it is NULL */
void *sim_must(void *p);
