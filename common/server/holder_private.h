/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the holder's end. Private to holder_carry.c, holder_desk.c and holder.c, of which each
 * calls only those before it; an answer from above goes upwards by struct holder's came().
 */
#ifndef MUSTER_SERVER_HOLDER_PRIVATE_H
#define MUSTER_SERVER_HOLDER_PRIVATE_H

#include "common/server/holder.h"

enum holder_state { RESTS, SEEKS, GREETS, FOLLOWS, COLLECTS, HOLDS };

/** A request under way. */
struct carry {
    TAILQ_ENTRY(carry) link;
    struct holder *holder;
    uint32_t from; /**< who has asked; self: this server */
    uint64_t id;   /**< of its question */
    enum holder_op op;
    void *body; /**< owned */
    size_t len;
    int64_t deadline;                                     /**< ms; 0: none */
    enum { CARRY_QUEUED, CARRY_SENT, CARRY_WAITS } state; /**< for us; above; at our own desk */
    uint32_t to;                                          /**< of CARRY_SENT: the server above */
    bool tried;                                           /**< in this round of the queue */
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
    uint32_t node; /**< its deputy */
    int64_t heard; /**< ms */
    int64_t gone;  /**< ms: since when it has no deputy; 0: it has */
};

struct holder {
    struct holder_env env;
    enum holder_state state;
    uint32_t node;   /**< of GREETS and FOLLOWS: the holder */
    uint32_t deputy; /**< as it was last known */
    bool asked;      /**< the resource manager owes an answer */
    bool closing;
    bool more;           /**< of GREETS: there is more to say than was said */
    bool succeeds;       /**< there was a holder before */
    uint32_t pause;      /**< ms until the next try */
    int64_t again;       /**< when to look for the holder again, ms; 0: not */
    int64_t since;       /**< since when we have looked for it in vain; 0: we have not */
    int64_t until;       /**< of COLLECTS: when it ends at the latest */
    uint32_t collecting; /**< of COLLECTS: answers that are owed */
    int64_t check;       /**< of HOLDS: when to look whether there is an older one, ms */
    uint32_t checks;     /**< how often that was done */
    int64_t ping;        /**< of FOLLOWS: when to say that we are there, ms */
    uint64_t range;      /**< of this step's context ids; 0: none yet */
    uint64_t ranges;     /**< the last that was given out, or was heard of */
    struct store *kept;  /**< published by the own step, as far as it came through here */
    struct store *held;  /**< of HOLDS and COLLECTS: published by all */
    struct carries carries;
    /** Takes the answer to carry_send(). */
    void (*came)(struct carry *c, int32_t status, const void *data, size_t len);
    TAILQ_HEAD(, client) clients;
};

/* ---- holder_carry.c: requests under way ---- */

struct carry *carry_new(struct holder *holder, uint32_t from, uint64_t id, const void *body,
                        size_t len);
/** Tells the asker; introduces publishers first. Frees the carry, now or later. */
void carry_answer(struct carry *c, int32_t status, const void *data, size_t len);
/** Asks @p node; holder::came takes the answer. */
void carry_send(struct carry *c, uint32_t node);
/** Frees all of them, without a word. */
void carry_free_all(struct holder *holder);
/** Of a server that is gone nobody waits for an answer. */
void carry_forget(struct holder *holder, uint32_t from);
/** What is published or ended by a request that has succeeded. */
void carry_keep(struct holder *holder, const struct carry *c);
bool holder_is_own(const struct holder *holder, uint32_t node);

/* ---- holder_desk.c: what the holder does with a request ---- */

/** Does what @p c asks, and answers it by carry_answer(), or lets it wait. */
void desk_serve(struct holder *holder, struct carry *c);
/** Looks again what waits at the desk. */
void desk_retry(struct holder *holder);
/** Notes that a deputy of another step is there. */
void desk_note(struct holder *holder, uint32_t node);
/** @return the step that it speaks for, or NULL: not noted */
struct client *desk_client(struct holder *holder, uint32_t node);
/** Adds the entries of a HELLO to @p store. @return false: malformed */
bool desk_take(struct holder *holder, struct store *store, struct wire_in *in);
/** Ends what only living steps have. */
void desk_tick(struct holder *holder, int64_t now);
int64_t desk_next(const struct holder *holder, int64_t now);
/** Next number of a range. */
uint64_t desk_range(struct holder *holder);

#endif
