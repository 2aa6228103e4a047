/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What the engine's tests share: operations and calls on a loopback, whose results are checked as
 * they come, and the log as text.
 *
 * Each call contributes bytes that tell operation, server and instance, so that a result shows
 * whose contributions it was made of.
 */
#pragma once

#include "ci/loopback/loopback.h"
#include "common/tracker/rollup/tracker.h"

/** One signature. */
struct kit_op {
    struct kit_op *next;
    uint32_t number;
    void *sig;
    size_t siglen;
    uint32_t n, *nodes; /**< the servers, ascending */
    uint32_t *made;     /**< per slot: calls so far */
};

/** One local call. */
struct kit_call {
    struct engine_call call;
    struct kit_call *next;
    struct kit *kit;
    struct kit_op *op;
    uint32_t slot, instance; /**< instance: number of the call among those of its server and op */
    unsigned answers;
    int32_t status;
    uint64_t context_id, made_at, answered_at;
    uint32_t *seen;                      /**< per slot: the instance in the result */
    void (*then)(struct kit_call *call); /**< called last when answered; may be NULL */
    unsigned char data[128];
};

/** What a call asks for. */
struct kit_ask {
    int32_t status;
    uint32_t flags, timeout;
    const struct procset *gone; /* of a later try */
    uint64_t op;                /* with it: of the tries before */
    void (*then)(struct kit_call *call);
};

struct kit {
    struct loopback *net;
    struct kit_op *ops;
    struct kit_call *calls; /**< all, the latest first */
    uint32_t nops;
    char fault[512]; /**< the first thing that was wrong; empty: none */
    char log[65536]; /**< what was logged, a line a message; the rest is dropped */
    size_t loglen;
};

/** @return a kit on a new network; the log is captured from warnings on */
struct kit *kit_new(const struct loopback_conf *conf);

/** Frees all; what waits is answered by the engines' end. */
void kit_free(struct kit *kit);

/** Frees all and asserts that nothing was wrong. */
void kit_end(struct kit *kit);

/** Notes what was wrong, unless something was before. */
void kit_fault(struct kit *kit, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** @return an operation over @p nodes, ascending; NULL: over all @p n servers */
struct kit_op *kit_op(struct kit *kit, enum coll_kind kind, const char *id, const uint32_t *nodes,
                      uint32_t n);

/** @return the processes of the servers whose bits @p mask has; the caller's, procset_free() */
struct procset kit_servers(uint32_t mask);

/** Makes the call of the server in @p slot. @return the call, the kit's */
struct kit_call *kit_call(struct kit *kit, struct kit_op *op, uint32_t slot, struct kit_ask ask);

/** Makes the calls of all servers of @p op, in slot order. */
void kit_call_all(struct kit *kit, struct kit_op *op, struct kit_ask ask);

/** Asserts that each call was answered once with @p status, and that all calls of one operation
 * and instance had one result. */
void kit_assert_all(struct kit *kit, int32_t status);

/** Notes a fault when calls of one operation and instance differ in their result. */
void kit_check_agreement(struct kit *kit);

/** @return the trackers of all servers that live */
uint32_t kit_trackers(const struct kit *kit);

/** Asserts that a line with @p text was logged. */
void kit_assert_logged(const struct kit *kit, const char *text);

/** Does something with networks of many sizes, each with several arities. */
void kit_every_size(void (*with)(uint32_t nnodes, uint32_t arity));

/** @return the tree of @p op, as the engines make it */
struct tree kit_tree(const struct kit_op *op, uint32_t arity);
