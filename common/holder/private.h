/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * State of the holder's end. Private to its files; docs/design.md has their order. What goes
 * upwards goes by struct holder's came(), when an answer has come.
 */
#pragma once

#include "common/holder/holder.h"

enum holder_state { RESTS, SEEKS, FOLLOWS, COLLECTS, HOLDS };

enum {
    PAUSE_FIRST_MS = 50, /* until the holder is looked for again */
    VAIN_MS = 30000,     /* what does not wait for data fails when there is no holder for so long */
    LOOK_MS = 10000,     /* between looks whether the steps that we serve are there */
    QUIET_MS = 25000,    /* a holder that we have not heard of for so long may be gone */
};

/** A request under way: of a process here, or of another server; or a word of ours. */
struct request {
    TAILQ_ENTRY(request) link;
    struct holder *holder;
    uint32_t from; /**< the server that has asked; self: this server */
    uint64_t id;   /**< of its question */
    enum holder_op op;
    void *body; /**< owned; of SETTLES: its answer */
    size_t len;
    struct timer deadline;
    enum {
        QUEUED,  /**< for us */
        SENT,    /**< to the server above, or wherever a word goes */
        WAITS,   /**< a lookup, for what is not published yet */
        SETTLES, /**< its answer is here, and others of the step are told of the publishers */
    } state;
    uint32_t to;   /**< of SENT */
    bool word;     /**< request_tell() has made it */
    bool sought;   /**< the resource manager was asked which of two is the holder */
    bool answered; /**< its asker is told; the answer from above is of no use any more */
    holder_done_fn *done;
    void *arg;
    struct store_lookup lookup; /**< of WAITS */
};
TAILQ_HEAD(requests, request);

/** How well the holder knows a step. */
enum client_state {
    CLIENT_GONE,      /**< its head is lost, and no other one has spoken */
    CLIENT_STRANGE,   /**< not yet, or it may have changed since */
    CLIENT_ASKED,     /**< its head was asked what the step has */
    CLIENT_KNOWN,     /**< what is held of it is what it has */
    CLIENT_LOOKED_AT, /**< the same, and its head was asked whether it is there */
};

/** Another step that the holder serves. */
struct client {
    TAILQ_ENTRY(client) link;
    char nspace[PROCSET_NAME_MAX + 1];
    uint32_t node; /**< its head, as far as it has spoken; else the next of its servers */
    enum client_state state;
    bool refuses; /**< it has answered neither that question nor a wish to keep something */
};

struct holder {
    struct holder_env env;
    enum holder_state state;
    uint32_t node;          /**< of FOLLOWS: the holder; of SEEKS: one that is leaving, or NONE */
    uint32_t head;          /**< as it was last known */
    bool asked;             /**< the resource manager owes an answer */
    bool closing, succeeds; /**< succeeds: there was a holder before */
    bool news;              /**< more is published: lookups that wait are looked at again */
    uint32_t listings;      /**< how often the other steps are still to be named */
    uint32_t looks, next_look; /**< at the steps that we serve; when for an older one, too */
    uint32_t pause;            /**< ms until the next try */
    int64_t since;             /**< since when the holder is looked for in vain, ms; 0: it is not */
    struct timer turn;         /**< to do what is queued */
    struct timer again;        /**< to look for the holder again */
    struct timer until;        /**< of COLLECTS: its end at the latest */
    struct timer look;         /**< of HOLDS: whether the steps that we serve are there; of FOLLOWS:
                                    whether the holder is */
    bool leaves;               /**< this server leaves */
    bool listed, alone;        /**< leaving: other steps were asked for; there are none */
    uint32_t heir;             /**< leaving: the server that was asked to keep it, or NONE */
    int64_t leave_until;       /**< when this server leaves all the same, ms */
    struct store *store; /**< published by the own step, as far as it came through here; at its
                            head also what steps that have ended have left to it; at the holder
                            also what other steps have: see store_entry::keeper */
    struct requests requests;
    size_t bytes;     /**< of these, and what it takes to keep them */
    uint64_t refused; /**< requests for which there was no room */
    /** Takes the answer to request_send() and request_tell(). */
    void (*came)(struct request *r, int32_t status, const void *data, size_t len);
    TAILQ_HEAD(, client) clients;
};

/* ---- state.c: what is asked of the state ---- */

/** Enters @p state, and logs it. */
void holder_set_state(struct holder *holder, enum holder_state state);
/** @return the name of the state of a head */
const char *holder_state_name(const struct holder *holder);
int64_t holder_now(const struct holder *holder);
bool holder_is_own(const struct holder *holder, uint32_t node);
bool holder_is_head(const struct holder *holder);
/** @return whether it is the session's holder, or collects to be it */
bool holder_is_holder(const struct holder *holder);
/** @return the first entry that is kept, or NULL */
const struct store_entry *holder_first(const struct holder *holder);
/** @return whether the holder is of use to this server */
bool holder_is_needed(const struct holder *holder);
/** What is queued is to be done, soon. */
void holder_turn(struct holder *holder);

/* ---- edits.c: what requests do to what is kept and held ---- */

/** Keeps what a request of the own step has published, and forgets what it has taken away. */
void edit_kept(struct holder *holder, const struct request *r);
/** What it publishes is kept here no more. */
void edit_undo(struct holder *holder, const struct request *r);
/** Does a request to what is held. @param keeper the step that asks, or NULL: the own one
 * @return its status */
int32_t edit_held(struct holder *holder, const struct request *r, const void *keeper);
/** Reads u32 count and so many entries into what is held, but for those that are in the way of
 * others. @return false: malformed, and none was taken */
bool edit_take(struct store *store, struct wire_in *in, const void *keeper);
/** Whether an entry is kept, and not only held; a store_which_fn. */
bool holder_keeps(const void *arg, const struct store_entry *e);
/** Appends an u8, and entries. */
void edit_put(const struct holder *holder, uint8_t before, store_which_fn *which,
              struct wire_out *out);

/* ---- requests.c: requests on their way ---- */

/** @return whether one more may wait: what processes ask for has a bound, what servers tell has not
 */
bool request_has_room(struct holder *holder, const void *body, size_t len);

/** Remembers question @p id of server @p node, with a copy of @p body.
 * @return owned by @p holder */
struct request *request_new(struct holder *holder, uint32_t from, uint64_t id, const void *body,
                            size_t len);
/** Tells the asker; introduces publishers first. */
void request_answer(struct request *r, int32_t status, const void *data, size_t len);
/** Asks @p node; holder::came takes the answer. */
void request_send(struct request *r, uint32_t node);
/** Asks server @p node something of our own; holder::came takes the answer, perhaps before this
 * returns. */
void request_tell(struct holder *holder, uint32_t node, const void *body, size_t len);
/** The same, of an op without more. */
void request_tell_op(struct holder *holder, uint32_t node, enum holder_op op);
/** Sets its deadline. @param ms 0: none */
void request_expires(struct request *r, uint32_t ms);
/** Of a server that is gone: no answer is awaited there any more. */
void request_forget(struct holder *holder, uint32_t from);
/** @return whether nothing has to be done for it any more: the turn frees it */
bool request_is_over(const struct request *r);
void request_free(struct request *r);

/* ---- desk.c: what the holder does with requests, and what it knows of steps ---- */

/** Does what @p r asks, and answers it, or lets it wait. */
void desk_serve(struct holder *holder, struct request *r);
/** Looks again at a lookup that waits. */
void desk_retry(struct holder *holder, struct request *r);
/** The head of another step is @p node: asks it what the step has, unless it has said so. */
struct client *desk_meet(struct holder *holder, uint32_t node);
/** Takes the answer of a head. */
void desk_hear(struct holder *holder, const struct request *r, int32_t status, const void *data,
               size_t len);
/** @return whether an answer of a head is awaited that says what its step has */
bool desk_awaits(const struct holder *holder);
/** A server of another step is gone. What only living steps have ends with its last one. */
void desk_lost(struct holder *holder, uint32_t node);
/** Looks whether the steps that we serve are there. */
void desk_look(struct holder *holder);
/** Keeps what outlives steps that are gone, to say it to the next holder. */
void desk_adopt(struct holder *holder);
/** Forgets the steps that we serve, and what they have. */
void desk_close(struct holder *holder);
void desk_free(struct holder *holder, struct client *client);

/* ---- seek.c: looking for the holder, and being it ---- */

/** Asks the resource manager, unless it owes an answer. */
void seek_now(struct holder *holder);
/** The same after a pause: the one that we followed is not the holder, or is lost. */
void seek_later(struct holder *holder);
/** The holder has answered. */
void seek_ends(struct holder *holder);
/** @return whether it was looked for in vain for so long that requests fail */
bool seek_is_vain(const struct holder *holder);
/** Asks the resource manager for a server of each other step. */
void seek_others(struct holder *holder);
/** Follows @p node from now on. */
void seek_follow(struct holder *holder, uint32_t node);
/** Holds once all have said what they have. */
void seek_hold(struct holder *holder);

/* ---- leave.c: what outlives a step is handed over ---- */

/** Looks for a server that keeps it, where one is missing. */
void leave_offer(struct holder *holder);
/** Takes the answer of the one that was asked. */
void leave_heard(struct holder *holder, const struct request *r, bool good);

/* ---- serve.c: requests ---- */

/** Does what is queued, as far as it can be done in this state. */
void serve_turn(struct holder *holder);
void serve_answer(struct request *r, int32_t status, const void *data, size_t len);
/** @return the holder that the answer to HOLDER_WHERE names, or HOLDER_NONE: it is gone */
uint32_t serve_where(const struct holder *holder, const void *data, size_t len);
