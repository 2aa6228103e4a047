/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * The session's *holder*: the one server that keeps what all steps of the user have published,
 * and where the leaders of bootstraps meet. Which server that is, and how requests get there.
 *
 *     process → its server → the step's deputy → the holder
 *
 * The *deputy* of a step is its first server that lives. It alone asks the resource manager for the
 * holder, and it alone speaks to it for its step.
 *
 * The holder may end at any time, so its state is soft. Each server on the way keeps what came
 * through it from the own step, and says it again (HELLO) to the next one above it when that
 * changes. A request that waits above is asked again there. A server that becomes the holder asks
 * one server of each other step (COLLECT) for that, and serves nothing else until they have
 * answered.
 *
 * | state of a deputy | meaning |
 * | --- | --- |
 * | RESTS | the holder is not known, and nothing here needs it |
 * | SEEKS | the resource manager was asked for the holder, or will be in a moment |
 * | GREETS | the holder has been told what this step has published, and has not answered yet |
 * | FOLLOWS | another step's server is the holder, and knows us |
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

/** What can be asked of the server above. The body is u8 op, and: */
enum holder_op {
    HOLDER_PUBLISH = 1, /**< u32 n, n entries */
    HOLDER_LOOKUP, /**< a lookup; answer: i32 status, u32 n, n × { str nspace, u32 rank, str key,
                        block value } */
    HOLDER_UNPUBLISH, /**< who, u8 range or STORE_RANGES, u32 n (0: all keys), n × str key */
    HOLDER_ENDED,     /**< str nspace, u32 rank or STORE_ANY_RANK */
    HOLDER_WHERE, /**< str nspace, u32 node: which one is known to be gone, or "" and 0; of the own
                       step alone; answer: str nspace, u32 node: the holder */
    HOLDER_HELLO, /**< u64 number of this HELLO among those of its sender, u8 whether these are all,
                     u32 n, n entries: what it has published; answer: u64 that number */
    HOLDER_PING,  /**< nothing: do you know me? */
    HOLDER_COLLECT, /**< nothing: I am the holder, say HELLO */
    HOLDER_READ,    /**< str nspace, u32 rank, u64 number: this entry was read, and is gone */
    HOLDER_HEIR,    /**< u32 n, n entries: I leave, and no other server would tell of these */
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
    /** Asks the resource manager for the session's holder, which holder_found() is told. NULL: the
     * session has one step. */
    void (*find)(void *arg);
    /** Asks it for a server of each other step, of which holder_other() is told. @return false: it
     * does not know them. NULL: the same */
    bool (*others)(void *arg);
    /** asks_send() of ASK_DATA, and asks_reply(). */
    void (*ask)(void *arg, uint32_t node, const void *body, size_t len, uint32_t timeout,
                ask_done_fn *done, void *done_arg);
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

/** @return NULL when out of memory; @p env is copied */
struct holder *holder_new(const struct holder_env *env);
/** Answers all that waits with codes.unreach, or HOLDER_AGAIN to other servers. */
void holder_close(struct holder *holder);
void holder_free(struct holder *holder);

/** Asks for something on behalf of this server.
 * @param body as in enum holder_op, copied @param ms until it fails with codes.timeout; 0: it may
 * wait for ever @param done called once, perhaps before this returns */
void holder_request(struct holder *holder, const void *body, size_t len, uint32_t ms,
                    holder_done_fn *done, void *arg);

/** Finds the holder itself, for leaders to meet there. @param done called once, perhaps before this
 * returns */
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
    const char *state; /**< as above in lower case; "sends" on a server that is not the deputy */
    uint32_t node;     /**< the holder's handle, or HOLDER_NONE: not known here */
    struct store_counts kept, held; /**< what the own step has published through here; what all
                                         have, on the holder */
    uint32_t waiting;               /**< requests that wait here */
    uint32_t steps;                 /**< other steps that the holder serves */
};
struct holder_view holder_view(const struct holder *holder);
