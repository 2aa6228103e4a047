/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The session's *holder*: the one server that keeps what all steps of the user have published,
 * and where the leaders of bootstraps meet. Which server that is, and how requests get there.
 *
 *     process → its server → the head of its step → the holder
 *
 * The holder is the head of the step that the resource manager names: the oldest one, where it
 * knows. It may end at any time, so what it has is soft. Each server *keeps* what came through it
 * from the own step, from when it passed that on, and says it to the next head of its step (KEEP).
 * A head says it to the holder when that asks (COLLECT). The holder asks each step before it serves
 * the step's first request, and all steps before it serves any. A request that waits above is asked
 * again there. docs/steps.md says what becomes of all that when a server ends.
 *
 * | state of a head | meaning |
 * | --- | --- |
 * | RESTS | the holder is not known, and nothing here needs it |
 * | SEEKS | the resource manager was asked for the holder, or will be in a moment |
 * | FOLLOWS | another step's head is the holder |
 * | COLLECTS | we are the holder, and ask the other steps for what they have |
 * | HOLDS | we are the holder |
 *
 * @thread all of it: the loop's
 */
#pragma once

#include "common/holder/store.h"
#include "common/transport/ask.h"

enum { HOLDER_NONE = 0xffffffff /**< no server */ };
enum {
    HOLDER_AGAIN = 1, /**< an answer that is no status of PMIx: I am not the holder, look again */
};

/** What can be asked of a server. The body is u8 op, and: */
enum holder_op {
    /* of the server above */
    HOLDER_PUBLISH = 1, /**< u32 n, n entries */
    HOLDER_LOOKUP, /**< a lookup; answer: i32 status, u32 n, n × { str nspace, u32 rank, str key,
                        block value } */
    HOLDER_UNPUBLISH, /**< who, u8 range or STORE_RANGES, u32 n (0: all keys), n × str key */
    HOLDER_ENDED,     /**< str nspace, u32 rank */
    HOLDER_KEEP,      /**< u32 n, n entries: what a server keeps; also of a head that leaves, to the
                           next server of its step */
    HOLDER_WHERE,     /**< nothing; answer: str nspace, u32 node: the holder */
    /* between heads of two steps */
    HOLDER_JOIN,    /**< nothing, to the holder: I follow you, ask me what I have */
    HOLDER_COLLECT, /**< nothing, from the holder: what have you? Answer: u8 whether these are all,
                         u32 n, n entries: what the step has published */
    HOLDER_PING,    /**< nothing, from the holder: do you follow me? */
    HOLDER_READ, /**< str nspace, u32 rank, u64 number, from the holder, and then within the step:
                      this entry was read, and is gone */
    HOLDER_HEIR, /**< u32 n, n entries: I leave, keep these in my place */
    HOLDER_OPS,
};

/** Status codes that are given here. */
struct holder_codes {
    int32_t success, duplicate, full, not_found, partial, timeout, unreach, bad, lost;
};

/** Takes an answer. @param data borrowed */
typedef void holder_done_fn(void *arg, int32_t status, const void *data, size_t len);

/** Takes a server's handle. @param node HOLDER_NONE: there is none; @p why then says why */
typedef void holder_where_fn(void *arg, uint32_t node, const char *why);

/** Surroundings; see engine.h. */
struct holder_env {
    void *arg;
    uint32_t self, nnodes; /**< of the own step; a handle from nnodes on is another step's */
    struct holder_codes codes;
    struct timers *timers; /**< borrowed */
    bool (*is_lost)(void *arg, uint32_t node);
    /** @return the head of the own step; the next server behind this one, or self: there is none */
    uint32_t (*head)(void *arg), (*heir)(void *arg);
    /** Asks the resource manager for the session's holder, which holder_found() is told. NULL: the
     * session has one step. */
    void (*find)(void *arg);
    /** Asks it for a server of each other step, of which holder_other() is told. NULL: it does not
     * know them, and they come by themselves */
    void (*others)(void *arg);
    /** asks_send() of ASK_DATA without a deadline, and asks_reply(). */
    void (*ask)(void *arg, uint32_t node, const void *body, size_t len, ask_done_fn *done,
                void *done_arg);
    void (*reply)(void *arg, uint32_t node, uint64_t id, int32_t status, const void *data,
                  size_t len);
    /** @return the namespace of a server, borrowed, or NULL */
    const char *(*nspace)(void *arg, uint32_t node);
    /** @return 0 and a server of a namespace, by the index of its node; -1: not known */
    int (*server)(void *arg, const char *nspace, uint32_t index, uint32_t *node);
    /** @return 0 and the server of a process; -1: not known */
    int (*node_of)(void *arg, const char *nspace, uint32_t rank, uint32_t *node);
    /** @p node is to know the namespaces of @p set before the next frame to it. */
    void (*acquaint)(void *arg, uint32_t node, const struct procset *set);
    /** Calls @p done once all servers of the own step know the namespaces of @p set. */
    void (*settle)(void *arg, const struct procset *set, void (*done)(void *arg), void *done_arg);
};

struct holder;

/** @p env is copied. */
struct holder *holder_new(const struct holder_env *env);
/** Answers all that waits with codes.unreach, or HOLDER_AGAIN to other servers. */
void holder_close(struct holder *holder);
void holder_free(struct holder *holder);

/** Asks for something on behalf of this server.
 * @param body as in enum holder_op, copied @param ms until it fails with codes.timeout; 0: it may
 * wait for ever @param done called once; before this returns only when it fails */
void holder_request(struct holder *holder, const void *body, size_t len, uint32_t ms,
                    holder_done_fn *done, void *arg);

/** Finds the holder itself, for leaders to meet there. @param done as in holder_request() */
void holder_where(struct holder *holder, holder_where_fn *done, void *arg);

/** Takes an ASK_DATA of server @p from. */
void holder_serve(struct holder *holder, uint32_t from, uint64_t id, const void *body, size_t len);

/** The answer to holder_env::find. @param node self: it is this server; HOLDER_NONE: not known */
void holder_found(struct holder *holder, uint32_t node, const char *why);

/** A server of another step, as holder_env::others was asked; HOLDER_NONE: that was the last one.
 */
void holder_other(struct holder *holder, uint32_t node);

/** Server @p node is gone. What was asked of it was answered with codes.lost. */
void holder_lost(struct holder *holder, uint32_t node);

/** A process of this server has ended. */
void holder_ended(struct holder *holder, const char *nspace, uint32_t rank);

/** This server is about to leave in order: what only it has goes to another one. */
void holder_leave(struct holder *holder);

/** @return whether that has not happened yet; true for some seconds at most */
bool holder_hands_over(const struct holder *holder);

/** How it stands, for muster-status. */
struct holder_view {
    const char *state;        /**< as above in lower case; "sends" on a server that is no head */
    uint32_t node;            /**< the holder's handle, or HOLDER_NONE: not known here */
    uint32_t kept;            /**< entries that the own step has published through here */
    struct store_counts held; /**< what all have, on the holder */
    uint32_t waiting;         /**< requests that wait here */
    uint32_t steps;           /**< other steps that the holder serves */
};
struct holder_view holder_view(const struct holder *holder);
