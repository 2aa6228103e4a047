/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Questions from one server to another, each answered once: by the other side, by its loss, or by
 * its deadline.
 * @thread all of it: the loop's
 */
#pragma once

#include "common/transport/frame.h"
#include "common/transport/wire.h"
#include "common/util/timers.h"

/** What can be asked. */
enum ask_topic {
    ASK_KNOCK, /**< no question, and not answered: one of before waits still. A server that leaves
                  may have got it and not read it, and the frame finds it gone */
    ASK_MODEX = 1, /**< a process's data: see docs/wire.md */
    ASK_QUERY,     /**< groups and sets: see common/nspace/registry.h */
    ASK_STATUS,    /**< the server's state: see common/server/status/status.h */
    ASK_DATA,      /**< what is published, and the session's holder: see common/holder/holder.h */
    ASK_OUTPUT, /**< a piece of what a spawned process prints: see common/server/spawned/outputs.h.
                   It waits as long as its reader does, which is no stall: none is reported */
    ASK_INPUT, /**< a piece of what a spawned process reads: see common/server/spawned/inputs.h. The
                * same
                */
    ASK_READY, /**< whether all processes wait for a debugger, answered when they do: see
                  common/server/status/stopped.h. The same */
    ASK_FAR,   /**< a question to all servers of the step, of another one: see
                  common/server/peers/ask_far.h */
    ASK_CHECKPOINT, /**< a checkpoint of processes, answered when they are done: see
                       common/upcall/checkpoint.h */
    ASK_CONTROL,    /**< what job control has all servers do, and only of all at once; see
                       common/upcall/control.c */
    ASK_USAGE,      /**< what processes and nodes use: see common/upcall/monitor.c */
    ASK_TOPICS,
};

/** Takes an answer. @param data borrowed, NULL with @p len 0 when @p status is not 0 */
typedef void ask_done_fn(void *arg, int32_t status, const void *data, size_t len);

/** Takes a question, which comes once; asks_reply() answers it, now or later. @param body borrowed
 */
typedef void ask_serve_fn(void *arg, uint32_t from, uint64_t id, const void *body, size_t len);

struct asks;

/** Surroundings; see engine.h. */
struct ask_env {
    void *arg;
    int32_t timeout, lost, unsupported, closing, full; /**< codes that are given here */
    uint32_t stall;        /**< seconds until a question that waits is reported; 0: never */
    struct timers *timers; /**< borrowed */
    /** Takes a report of a question that waits; NULL: it is logged. @param s seconds */
    void (*stalled)(void *arg, uint64_t s, const char *about);
    void (*send)(void *arg, uint32_t node, struct wire_out *frame);
    /** @return whether something that was sent to a server has not arrived there. NULL: no */
    bool (*is_under_way)(void *arg, uint32_t node);
    /** Writes what is asked of whom, for the report: "direct modex of 4711.0 rank 5 on c07". */
    void (*describe)(void *arg, uint32_t node, enum ask_topic topic, const void *body, size_t len,
                     char *buf, size_t cap);
    ask_serve_fn *serve[ASK_TOPICS];
};

struct asks *asks_new(const struct ask_env *env);

/** Asks server @p node; @p done is called exactly once: with the code "full" at once when too much
 * waits for its answer. Pieces of output and of input, and what is published, are bounded by their
 * askers.
 * @param timeout seconds; 0: none */
void asks_send(struct asks *asks, uint32_t node, enum ask_topic topic, const void *body, size_t len,
               uint32_t timeout, ask_done_fn *done, void *arg);

/** Answers question @p id of server @p node. */
void asks_reply(struct asks *asks, uint32_t node, uint64_t id, int32_t status, const void *data,
                size_t len);

/** Takes the body of a FRAME_ASK or FRAME_ANSWER. */
void asks_frame(struct asks *asks, uint32_t from, enum frame_type type, const void *body,
                size_t len);

/** Server @p node is gone for good. */
void asks_lost(struct asks *asks, uint32_t node);

/** @return whether that was said of @p node */
bool asks_are_lost(const struct asks *asks, uint32_t node);

/** A question that waits for its answer. All of it is borrowed. */
struct ask_view {
    uint32_t node;
    enum ask_topic topic;
    const char *about; /**< as ask_env::describe has it */
    uint64_t age;      /**< ms since it was asked */
    int64_t left;      /**< ms until it fails; -1: it has no deadline */
};

/** Shows every question that waits. @p visit must not call the asks. */
void asks_walk(const struct asks *asks, void (*visit)(void *arg, const struct ask_view *view),
               void *arg);

/** Questions that were asked and served so far, by topic. */
struct ask_counts {
    uint64_t asked[ASK_TOPICS], served[ASK_TOPICS];
};

struct ask_counts asks_counts(const struct asks *asks);

/** Answers all questions, and those that come later, with the closing code. */
void asks_close(struct asks *asks);
void asks_free(struct asks *asks);
