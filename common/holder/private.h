/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the holder's end. Private to its files; docs/design.md has their order. What goes
 * upwards is only an answer from above and the word that the queue is to be served, by struct
 * holder's came() and serve().
 */
#pragma once

#include "common/holder/holder.h"

enum holder_state { RESTS, SEEKS, GREETS, FOLLOWS, COLLECTS, HOLDS };

enum {
    PAUSE_FIRST_MS = 50, /* until the holder is looked for again */
    VAIN_MS = 30000,     /* what does not wait for data fails when there is no holder for so long */
    ANSWER_S = 10,       /* for the answer to a HELLO */
    PING_MS = 10000,
    CHECK_FIRST_MS = 2000, /* a holder looks for an older one so long after it has begun */
};

/** How far a deputy that ends in order has handed over what no other server would tell. */
enum leave_state {
    LEAVE_NOT,    /**< it does not leave */
    LEAVE_OFFERS, /**< it has no heir yet */
    LEAVE_AWAITS, /**< one was asked */
    LEAVE_DONE,   /**< one has it; or there is nothing to hand over, or no server to take it */
};

/** A request under way. */
struct carry {
    TAILQ_ENTRY(carry) link;
    struct holder *holder;
    uint32_t from; /**< the server that has asked; self: this server */
    uint64_t id;   /**< of its question */
    enum holder_op op;
    void *body; /**< owned */
    size_t len;
    struct timer deadline;
    enum { CARRY_QUEUED, CARRY_SENT, CARRY_WAITS } state; /**< for us; above; at our own desk */
    uint32_t to;                                          /**< of CARRY_SENT: the server above */
    bool tried;                                           /**< in this round of the queue */
    bool went;     /**< it was sent above, now or before: perhaps it was done there */
    bool answered; /**< its asker is told; the answer from above is of no use any more */
    holder_done_fn *done;
    void *arg;
    struct store_lookup lookup; /**< of HOLDER_LOOKUP at our own desk */
    void *data;                 /**< the answer, while others of the own step are told; owned */
    size_t datalen;
    int32_t status;
};
TAILQ_HEAD(carries, carry);

/** Another step that the holder serves. */
struct client {
    TAILQ_ENTRY(client) link;
    char nspace[PROCSET_NAME_MAX + 1];
    uint32_t node;  /**< its deputy */
    uint64_t hello; /**< number of the last HELLO that was taken from it */
    bool parted;    /**< other servers of the step have been its deputy, too: perhaps its servers do
                         not agree on which of them are lost, and none has heard of all */
    bool gone;      /**< it has no deputy */
    struct timer end; /**< it counts as ended */
};

struct holder {
    struct holder_env env;
    enum holder_state state;
    uint32_t node; /**< of GREETS and FOLLOWS: the holder; of SEEKS: one that is leaving, or NONE */
    uint32_t deputy; /**< as it was last known */
    bool asked;      /**< the resource manager owes an answer */
    bool closing;
    bool more;           /**< of GREETS: there is more to say than was said */
    bool succeeds;       /**< there was a holder before */
    uint32_t pause;      /**< ms until the next try */
    struct timer again;  /**< to look for the holder again */
    struct timer vain;   /**< runs while we look for it; then what waits fails */
    struct timer until;  /**< of COLLECTS: its end at the latest */
    uint32_t collecting; /**< of COLLECTS: answers that are owed */
    uint32_t listings;   /**< how often the other steps are still to be named, to be collected from;
                              when they are named once more, it is for heirs */
    struct timer check;  /**< of HOLDS: to look whether there is an older one. Where that is due
                            while  the resource manager owes an answer, its answer starts it again */
    uint32_t checks;     /**< how often that was done */
    struct timer ping;   /**< of FOLLOWS: to say that we are there */
    enum leave_state leave;
    int64_t leave_until; /**< of OFFERS and AWAITS: when this server leaves all the same, ms */
    uint32_t heir;       /**< of AWAITS: the server that was asked */
    bool declined;       /**< the next server of the own step leaves, too */
    enum {
        HEIRS_NOT_ASKED,
        HEIRS_ASKED,
        HEIRS_NAMED
    } heirs;         /**< leaving: whether other steps were asked for, beside those that we know */
    uint64_t hellos; /**< that were said */
    uint64_t greeting;  /**< of GREETS: number of the HELLO whose answer counts */
    struct store *kept; /**< published by the own step, as far as it came through here */
    struct store *held; /**< of HOLDS and COLLECTS: published by all */
    struct carries carries;
    size_t carried;   /**< bytes of these, and what it takes to keep them */
    uint64_t refused; /**< requests for which there was no room */
    /** Takes the answer to carry_send(). */
    void (*came)(struct carry *c, int32_t status, const void *data, size_t len);
    /** Does what is queued, as far as it can be done now. */
    void (*serve)(struct holder *holder);
    TAILQ_HEAD(, client) clients;
};

/* ---- carry.c: requests under way ---- */

/** @return whether one more may wait: what processes ask for has a bound, what servers tell has not
 */
bool carry_has_room(struct holder *holder, const void *body, size_t len);

/** Remembers question @p id of server @p from, with a copy of @p body.
 * @return owned by @p holder until carry_answer(), or NULL: out of memory */
struct carry *carry_new(struct holder *holder, uint32_t from, uint64_t id, const void *body,
                        size_t len);
/** Tells the asker; introduces publishers first. Frees the carry, now or later. */
void carry_answer(struct carry *c, int32_t status, const void *data, size_t len);
/** Asks @p node; holder::came takes the answer. */
void carry_send(struct carry *c, uint32_t node);
/** Sets its deadline. @param ms 0: none */
void carry_expires(struct carry *c, uint32_t ms);
/** Frees all of them, without a word. */
void carry_free_all(struct holder *holder);
/** Of a server that is gone: no answer is awaited there any more. */
void carry_forget(struct holder *holder, uint32_t from);
/** What is published or ended by a request that has succeeded. */
void carry_keep(struct holder *holder, const struct carry *c);
bool holder_is_own(const struct holder *holder, uint32_t node);

/* ---- desk.c: what the holder does with a request ---- */

/** Does what @p c asks, and answers it by carry_answer(), or lets it wait. */
void desk_serve(struct holder *holder, struct carry *c);
/** Looks again what waits at the desk. */
void desk_retry(struct holder *holder);
/** Notes that a deputy of another step is there. */
void desk_note(struct holder *holder, uint32_t node);
/** @return the step that it speaks for, or NULL: not noted */
struct client *desk_client(struct holder *holder, uint32_t node);
/** Adds the entries of a HELLO to @p store. @return false: malformed */
bool desk_take(struct store *store, struct wire_in *in);
/** Notes that a step has no deputy. */
void desk_gone(struct client *client);
void desk_free(struct holder *holder, struct client *client);

/* ---- state.c: what is asked of the state ---- */

/** Enters @p state, and logs it. */
void holder_set_state(struct holder *holder, enum holder_state state);
/** @return the name of the state of a deputy */
const char *holder_state_name(const struct holder *holder);
int64_t holder_now(const struct holder *holder);
bool holder_is_deputy(const struct holder *holder);
/** @return whether it is the session's holder, or collects to be it */
bool holder_is_holder(const struct holder *holder);
uint32_t holder_find_deputy(const struct holder *holder);
/** @return where requests go from here, or HOLDER_NONE: not yet, or to our own desk */
uint32_t holder_above(const struct holder *holder);
/** @return whether the holder is of use to this server */
bool holder_is_needed(const struct holder *holder);
/** Takes an answer that changes nothing. */
void holder_ignore(void *arg, int32_t status, const void *data, size_t len);

/* ---- hold.c: being the holder ---- */

/** Asks the other steps for what they have, and then holds. */
void hold_collect(struct holder *holder);
/** Holds from now on. */
void hold_begin(struct holder *holder);
/** Has our own step's entries held, too. */
void hold_kept(struct holder *holder);
/** Keeps what is held of steps that are gone, as no other server will say it to the next holder. */
void hold_adopt(struct holder *holder);

/* ---- seek.c: looking for the holder ---- */

/** Asks the resource manager, unless it owes an answer. */
void seek_now(struct holder *holder);
/** The same after a pause. */
void seek_later(struct holder *holder);
/** The same as the holder's answer is @p status: it is leaving, and its goodbye ends the pause; or
 * it is lost, and the resource manager may name it again for a while. */
void seek_again(struct holder *holder, int32_t status);
/** Takes @p node for the holder. */
void seek_follow(struct holder *holder, uint32_t node);
/** Says to the server above what has come through here. @return false: out of memory */
bool seek_greet(struct holder *holder, uint32_t node, ask_done_fn *done);

/** What this step's servers keep has become more: the holder is to hear of it. */
void seek_say_kept(struct holder *holder);

/* ---- leave.c: what outlives a step is handed over ---- */

/** Looks for an heir, where one is missing: the state has changed. */
void leave_offer(struct holder *holder);
/** Takes a HOLDER_HEIR. */
void leave_inherit(struct holder *holder, struct carry *c);

/* ---- serve.c: requests ---- */

/** Does the requests that are queued, as far as it can be done in this state. */
void serve_queue(struct holder *holder);
void serve_answer(struct carry *c, int32_t status, const void *data, size_t len);
/** Asks the holder whether it knows us. */
void serve_ping(struct holder *holder);
